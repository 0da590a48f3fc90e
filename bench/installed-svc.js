// Starts the built svc as its bin does in an installed package. In a repository the bin itself starts the sources.
import '../cli/bin/compile-cache.js'
await import('../cli/dist/main.js')
