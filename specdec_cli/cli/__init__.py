"""What a person sees: commands, rendering, input. No algorithms."""
