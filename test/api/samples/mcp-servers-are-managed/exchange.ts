import { hostileCommand } from '../../../support/hostile.ts'
import { any, exact, exchange, get, invalid, list, matching, missing, ok, post, refused, remove } from '../../exchange.ts'
import type { Answer } from '../../exchange.ts'

const SERVERS = '/api/v1/mcp/servers'
const url = 'http://127.0.0.1:9/mcp'
const notFound = refused(404, 'INVALID_VALUE', { field: 'server', reason: 'not found' })
interface Tools {
  readonly tools: readonly { readonly name: string; readonly version: string }[]
}

export default exchange({
  rule: 'adds, tests, approves, switches and removes MCP servers; starts no program of a caller',
  source: 'docs/guides/bridge-mcp-servers.md',
  alone: true,
  config: { mcp: { clients: [{ name: 'fixed', ...hostileCommand() }] } },
  steps: [
    { request: get(SERVERS), expect: ok(exact({ servers: list(any('object')) })) },
    { request: get(`${SERVERS}/none`), expect: notFound },
    { request: post(SERVERS, {}), expect: missing(['name'], []) },
    {
      request: post(SERVERS, { name: 'sh', command: '/bin/sh' }),
      expect: refused(403, 'FORBIDDEN', { field: 'command', reason: any('text') }),
    },
    { request: post(SERVERS, { name: 'far', url: 'file:///etc/passwd' }), expect: invalid('url') },
    {
      request: post(`${SERVERS}/fixed/test`, {}),
      expect: {
        status: 200,
        text: matching(/^(id: \d\nevent: step\ndata: .*"error":null\}\n\n){3}id: 4\nevent: end\ndata: .*"ok":true\}\n\n$/),
      },
    },
    { request: get(`${SERVERS}/fixed/tools?fresh=true`), expect: ok({ server: 'fixed', tools: any('array'), failure: null }) },
    {
      request: (answers: readonly Answer[]) => {
        const [{ name, version }] = (answers.at(-1)!.body as Tools).tools as [Tools['tools'][number]]
        return post(`${SERVERS}/fixed/approve`, { tools: [{ name, version }] })
      },
      expect: ok({ name: 'fixed', changed: [] }),
    },
    {
      request: (answers: readonly Answer[]) =>
        post(`${SERVERS}/fixed/approve`, { tools: [{ name: (answers[6]!.body as Tools).tools[0]!.name, version: 'another' }] }),
      expect: refused(412, 'PRECONDITION_FAILED'),
    },
    { request: post(`${SERVERS}/fixed/disable`, undefined), expect: ok({ name: 'fixed', state: 'disabled' }) },
    { request: post(`${SERVERS}/fixed/enable`, undefined), expect: ok({ name: 'fixed' }) },
    { request: remove(`${SERVERS}/fixed`), expect: invalid('server') },
    {
      request: post(SERVERS, { name: 'far', url }),
      expect: { status: 201, body: exact({ server: 'far', applied: true, problems: [], hint: null }) },
    },
    { request: get(`${SERVERS}/far`), expect: ok({ name: 'far', url, command: null, runs: 'remote', removable: true }) },
    { request: remove(`${SERVERS}/far`), expect: ok(exact({ server: 'far', applied: true, problems: [], hint: null })) },
  ],
})
