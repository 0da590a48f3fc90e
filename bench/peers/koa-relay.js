// A typical koa application (router, body parser, ajv, silent log) in front of the same upstream, with undici.
import { bodyParser } from '@koa/bodyparser'
import { Router } from '@koa/router'
import { Ajv } from 'ajv'
import Koa from 'koa'
import { pino } from 'pino'
import { Pool } from 'undici'

const [port, upstream] = process.argv.slice(2).map(Number)
const pool = new Pool(`http://127.0.0.1:${upstream}`, { connections: 512 })
const text = { type: 'string', minLength: 1 }
const validate = new Ajv().compile({
  type: 'object',
  properties: { model: text, messages: { type: 'array', minItems: 1 }, stream: { type: 'boolean' } },
  required: ['model', 'messages'],
})

const log = pino({ level: 'silent' })
const router = new Router()
router.get('/health', ctx => void (ctx.body = { status: 'healthy' }))
router.post('/v1/chat/completions', async ctx => {
  const asked = ctx.request.body
  if (!validate(asked)) return void Object.assign(ctx, { status: 400, body: { error: validate.errors[0].message } })
  const headers = { 'content-type': 'application/json' }
  const answer = await pool.request({ path: ctx.path, method: 'POST', headers, body: JSON.stringify(asked) })
  ctx.status = answer.statusCode
  if (!asked.stream) return void (ctx.body = await answer.body.json())
  ctx.set('Content-Type', 'text/event-stream')
  ctx.body = answer.body
})
const app = new Koa()
app.use(async (ctx, next) => {
  const began = performance.now()
  await next()
  log.info({ method: ctx.method, path: ctx.path, status: ctx.status, ms: performance.now() - began }, 'request')
})
app.use(bodyParser({ enableTypes: ['json'] }))
app.use(router.routes())
app.listen(port, '127.0.0.1')
