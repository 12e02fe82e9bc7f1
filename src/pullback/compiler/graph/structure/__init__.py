"""What is known of arrays by how they are made, and what follows for products and sums of them."""
