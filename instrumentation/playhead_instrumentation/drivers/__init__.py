"""What a boundary asks: recorder and player. Only here it is known which of them answers."""
