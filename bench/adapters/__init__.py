"""Programs that run one queue each, and speak the protocol of `wire`. Each peer has its environment."""
