import { enableCompileCache } from 'node:module'

enableCompileCache()
const { default: Koa } = await import('koa')
const app = new Koa()
app.use(ctx => void (ctx.body = { status: 'healthy' }))
app.listen(Number(process.argv[2]), '127.0.0.1')
