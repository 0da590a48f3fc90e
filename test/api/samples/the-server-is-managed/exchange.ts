import type { Answer, Request } from '../../exchange.ts'
import { any, exact, exchange, get, including, matching, ok, post, refused, remove, time, without } from '../../exchange.ts'

const etag = (answer: Answer | undefined) => ({ 'if-match': answer!.headers.etag! })
const versioned = (method: string, path: string, headers: Record<string, string>, body?: unknown): Request => ({
  method,
  path,
  headers,
  ...(body === undefined ? {} : { body }),
})
const put = (path: string, body: unknown): Request => ({ method: 'PUT', path, body })
const secret = exact({
  name: 'weather',
  source: 'sealed',
  state: 'ready',
  created_at: time,
  changed_at: time,
  key_id: any('text'),
})
const token = exact({
  id: matching(/^tok_/),
  name: 'ci',
  scopes: ['read'],
  created_at: time,
  expires_at: time,
  last_used_at: null,
})
const [CONFIG, PROFILES] = ['/api/v1/config', '/api/v1/profiles']
const local = { ok: false, problems: [{ code: 'CONFIG_KEY_LOCAL', path: 'plugins', hint: any('text') }] }
const stale = refused(412, 'PRECONDITION_FAILED', { version: any('text') })

export default exchange({
  rule: 'manages secrets, tokens, the store, the configuration and the profiles of the server, and reloads it',
  source: 'docs/reference/http.md',
  alone: true,
  env: { SVC_SECRETS_KEY: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' },
  steps: [
    { request: get('/api/v1/secrets'), expect: ok(exact({ secrets: [] })) },
    {
      request: put('/api/v1/secrets/weather', { value: 'sunny' }),
      expect: { status: 200, body: secret, text: without(/sunny/) },
    },
    { request: post('/api/v1/secrets/reseal', undefined), expect: ok(exact({ resealed: any('number'), key_id: any('text') })) },
    { request: remove('/api/v1/secrets/weather'), expect: ok(exact({ success: true })) },
    {
      request: remove('/api/v1/secrets/weather'),
      expect: refused(404, 'INVALID_VALUE', { field: 'secret', reason: 'not found' }),
    },

    {
      request: post('/api/v1/tokens', { name: 'ci', scopes: ['read'], ttl_s: 3_600 }),
      expect: { status: 201, body: exact({ token: matching(/^svc_[\w-]{43}$/), info: token }) },
    },
    { request: get('/api/v1/tokens'), expect: ok(exact({ tokens: [token] })) },
    { request: remove('/api/v1/tokens/ci'), expect: ok(exact({ revoked: [token] })) },
    { request: remove('/api/v1/tokens/ci'), expect: refused(404, 'INVALID_VALUE', { field: 'token', reason: 'not found' }) },

    { request: get('/api/v1/store'), expect: ok({ kind: 'sqlite', durable: true, role: 'primary', can_back_up: true }) },
    { request: post('/api/v1/store/backup', undefined), expect: { status: 202, body: { kind: 'store.backup' } } },

    {
      request: get(`${CONFIG}?key=log.level`),
      expect: ok({ values: [{ key: 'log.level', keys: ['log', 'level'], local: null }] }),
    },
    { request: get(`${CONFIG}/schema`), expect: ok({ title: any('text') }) },
    {
      request: post(`${CONFIG}/check`, { text: 'log: { level: debug }' }),
      expect: ok(exact({ ok: true, problems: [], unchecked: any('array') })),
    },
    { request: post(`${CONFIG}/check`, { values: { plugins: ['/tmp/evil.js'] } }), expect: ok(local) },
    {
      request: answers => versioned('PATCH', CONFIG, etag(answers[11]), { values: { log: { level: 'warn' } } }),
      expect: ok({ changed: [exact({ key: 'log.level', before: null, after: 'warn' })], reload_required: true }),
    },
    { request: answers => versioned('PATCH', CONFIG, etag(answers[11]), { values: { log: { level: 'info' } } }), expect: stale },

    { request: get(`${CONFIG}/profiles`), expect: ok({ default: 'default', is_pending: false, locked: null }) },
    { request: post(`${PROFILES}/brief/check`, { max_tokens: 7 }), expect: ok(exact({ ok: true, problems: [], warnings: [] })) },
    {
      request: answers => versioned('PUT', `${PROFILES}/brief`, etag(answers[17]), { max_tokens: 7 }),
      expect: ok({ reload_required: true }, { etag: matching(/^"[\da-f]+"$/) }),
    },
    { request: answers => versioned('DELETE', `${PROFILES}/brief`, etag(answers[17])), expect: stale },
    { request: post('/api/v1/reload', undefined), expect: ok({ reloaded: true, problems: [] }) },
    { request: get(PROFILES), expect: ok({ profiles: including({ name: 'brief' }) }) },
    { request: answers => versioned('DELETE', `${PROFILES}/brief`, etag(answers[19])), expect: ok({ reload_required: true }) },
  ],
})
