import { exchange, invalid, post } from '../../exchange.ts'

const call = (body: unknown) => post('/tools/read_file/call', body)
const bad = (body: unknown, field: string) => ({ request: call(body), expect: invalid(field) })

export default exchange({
  rule: 'refuses arguments that break the schema of the tool, a missing one too, and a timeout that is no time: 400 names the field',
  source: 'decisions.md 2, POST /tools/{name}/call: INVALID_VALUE, field arguments.<path>; timeout not above 0',
  steps: [
    bad({}, 'arguments.path'),
    bad({ arguments: null }, 'arguments.path'),
    bad({ path: 'a' }, 'arguments.path'),
    bad({ arguments: { path: 1 } }, 'arguments.path'),
    bad({ arguments: { path: 'a', limit: 'many' } }, 'arguments.limit'),
    bad({ arguments: { path: 'a', pat: 'b' } }, 'arguments.pat'),
    bad({ arguments: [] }, 'arguments'),
    bad({ arguments: 'path' }, 'arguments'),
    ...[0, -1, -0.5, null, '5', true, [1], 3601, 1e300].map(timeout => bad({ arguments: { path: 'a' }, timeout }, 'timeout')),
  ],
})
