"""What tests share: worlds around a store, processes, and how to wait for them."""
