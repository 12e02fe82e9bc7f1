"""From jaxprs to loop nests: passes over the graph, lowering, the lists of passes."""
