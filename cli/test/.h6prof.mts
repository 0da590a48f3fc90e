import { enableCompileCache } from 'node:module'
enableCompileCache()
const t0 = performance.now()
const lap = async (w: string, f: () => Promise<unknown>) => { const c = process.cpuUsage(); const t = performance.now(); await f(); const u = process.cpuUsage(c); console.log(w.padEnd(34), (performance.now() - t).toFixed(0).padStart(5), 'cpu', ((u.user + u.system) / 1000).toFixed(0)) }
console.log('boot', t0.toFixed(0))
await lap('ajv', () => import('ajv'))
await lap('pino', () => import('pino'))
await lap('core', () => import('@svc/core'))
await lap('contracts', () => import('@svc/core/contracts'))
await lap('processes', () => import('@svc/core/processes'))
await lap('koa', () => import('koa'))
await lap('router', () => import('@koa/router'))
for (const p of ['http','rest','metrics','chat','conversations','selection','modes','provider-local','tools-time','tools-files','store-sqlite']) await lap(p, () => import('@svc/plugin-'+p))
