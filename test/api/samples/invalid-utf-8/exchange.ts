import { eachBodyRoute, exchange, invalid } from '../../exchange.ts'

const wrong = [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0xc0, 0xaf], [0xe2, 0x82]]
const quoted = (bytes: number[]) => Buffer.concat([Buffer.from('{"message":"'), Buffer.from(bytes), Buffer.from('"}')])

export default exchange({
  rule: 'refuses a body that is not valid UTF-8 and never repairs it',
  source: 'decisions.md 1, bodies that are not valid UTF-8',
  steps: eachBodyRoute(path =>
    wrong.map(bytes => ({ request: { method: 'POST', path, raw: quoted(bytes) }, expect: invalid('body') }))
  ),
})
