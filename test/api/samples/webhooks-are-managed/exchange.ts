import { any, exact, exchange, field, get, matching, missing, ok, post, refused, remove, time } from '../../exchange.ts'
import type { Answer } from '../../exchange.ts'

const HOOKS = '/api/v1/webhooks'
const webhook = (more: object) =>
  exact({
    id: any('text'),
    name: '',
    url: 'https://hooks.example/path',
    types: ['turn_*'],
    enabled: true,
    disabled_reason: null,
    created_at: time,
    updated_at: time,
    ...more,
  })
const idOf = (answer: Answer | undefined) => (answer!.body as { webhook: { id: string } }).webhook.id
const notFound = refused(404, 'INVALID_VALUE', { field: 'id', reason: 'not found' })

export default exchange({
  rule: 'adds, changes and removes webhooks; the secret is in the answer that makes it and in no other',
  source: 'docs/guides/receive-webhooks.md',
  alone: true,
  env: { SVC_SECRETS_KEY: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' },
  steps: [
    { request: get(HOOKS), expect: ok(exact({ webhooks: [] })) },
    { request: post(HOOKS, {}), expect: missing(['url'], []) },
    { request: post(HOOKS, { url: 'file:///etc/passwd' }), expect: refused(400, 'INVALID_VALUE', { field: 'url' }) },
    {
      request: post(HOOKS, { url: 'https://hooks.example/path', types: ['turn_*'] }),
      expect: { status: 201, body: exact({ webhook: webhook({}), secret: matching(/^whsec_[\w+/]{43}=$/) }) },
    },
    { request: get(HOOKS), expect: ok(exact({ webhooks: [webhook({})] })) },
    {
      request: answers => ({ method: 'PATCH', path: `${HOOKS}/${idOf(answers[3])}`, body: { enabled: false, name: 'ours' } }),
      expect: ok(exact({ webhook: webhook({ enabled: false, name: 'ours' }) })),
    },
    {
      request: answers => get(`${HOOKS}/${idOf(answers[3])}/deliveries`),
      expect: ok(exact({ deliveries: [], next_cursor: null })),
    },
    { request: answers => remove(`${HOOKS}/${idOf(answers[3])}`), expect: ok(exact({ success: true })) },
    { request: answers => get(`${HOOKS}/${idOf(answers[3])}`), expect: notFound },
    { request: answers => remove(`${HOOKS}/${field(answers[0], 'id')}`), expect: notFound },
  ],
})
