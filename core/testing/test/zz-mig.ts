import { startPostgres } from '@svc/testing/engines'
const p = await startPostgres({ settings: { max_connections: 60 } }); console.log(p.url); await new Promise(f => process.on('SIGTERM', f)); await p[Symbol.asyncDispose]()
