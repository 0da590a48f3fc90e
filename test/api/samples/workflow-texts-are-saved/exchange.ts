import { any, exact, exchange, field, get, matching, missing, ok, post, refused } from '../../exchange.ts'

const PATH = '/api/v1/workflows'
const TEXT = '# adds\nname: made\nnodes: { a: { type: transform, value: 1 } }\n'
const put = (text: string, headers: Record<string, string>) => ({
  method: 'PUT',
  path: `${PATH}/source?workflow=made`,
  body: { text },
  headers,
})

export default exchange({
  rule: 'reads, checks, draws and saves the text of a workflow; a change names the version that it replaces',
  source: 'docs/guides/run-workflows.md',
  alone: true,
  steps: [
    {
      request: put(TEXT, { 'if-none-match': '*' }),
      expect: ok({ name: 'made', source: 'made.yaml', text: TEXT, writable: true }, { etag: matching(/^"[\w-]+"$/) }),
    },
    { request: put(TEXT, {}), expect: missing(['If-Match'], []) },
    { request: put(TEXT, { 'if-none-match': '*' }), expect: refused(412, 'PRECONDITION_FAILED', { field: 'workflow' }) },
    {
      request: answers => put(TEXT.replace('1', '2'), { 'if-match': `"${field(answers[0], 'version')}"` }),
      expect: ok({ name: 'made', problems: [] }),
    },
    {
      request: answers => put(TEXT, { 'if-match': `"${field(answers[0], 'version')}"` }),
      expect: refused(412, 'PRECONDITION_FAILED', { field: 'workflow' }),
    },
    { request: get(`${PATH}/source?workflow=made`), expect: ok({ text: TEXT.replace('1', '2'), format: 'yaml' }) },
    {
      request: get(`${PATH}/drawing?workflow=made`),
      expect: ok(
        exact({
          name: 'made',
          nodes: [exact({ id: 'a', name: 'a', type: 'transform', status: null, edges: [], bodies: [] })],
        })
      ),
    },
    {
      request: get(`${PATH}/svg?workflow=made`),
      expect: { status: 200, headers: { 'content-type': 'image/svg+xml; charset=utf-8' }, text: matching(/^<svg/) },
    },
    { request: get(`${PATH}/nodes`), expect: ok({ nodes: any('array') }) },
    {
      request: post(`${PATH}/validate`, { text: 'name: x\nnodes: { a: { type: none } }' }),
      expect: ok({ valid: false, problems: [{ path: 'nodes.a.type', line: 2, column: 15 }] }),
    },
    { request: get(`${PATH}/questions`), expect: ok(exact({ questions: [], chats: [], next_cursor: null })) },
  ],
})
