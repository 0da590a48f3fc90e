// The server of hostile-mcp.ts as a program: most of its start would be to strip types, which is kept from the first one that does it.
import { enableCompileCache, flushCompileCache } from 'node:module'

enableCompileCache()
await import('./hostile-mcp.ts')
flushCompileCache()
