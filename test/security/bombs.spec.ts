import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { newHome, post, type Service, startService } from '../support/service.ts'

const LONG = 'a'.repeat(450_000)
/** What a search finds out last that it does not fit, at each place of a text of one letter. */
const HALVES = { a: 'a'.repeat(600_000), b: `${'a'.repeat(200_000)}b${'a'.repeat(200_000)}` }
const NUMBERS = Array.from({ length: 1_000 }, (_, at) => at)
const deep = (sign: string, other: string) => sign.repeat(200_000) + other.repeat(200_000)

/** Expressions that a caller's input makes expensive. */
const EXPRESSIONS: Readonly<Record<string, readonly [value: unknown, input: object]>> = {
  'looks for a long text in a long one': ['${{ input.a.contains(input.b) }}', HALVES],
  'looks for it from behind': ['${{ input.a.lastIndexOf(input.b) }}', HALVES],
  'splits by it': ['${{ input.a.split(input.b) }}', HALVES],
  'splits a text into its characters': [
    '${{ (input.a + input.a + input.a + input.a + input.a + input.a).split("") }}',
    { a: LONG },
  ],
  'joins many with a long text': ['${{ input.list.join(input.a) }}', { a: LONG, list: NUMBERS.map(String) }],
  'loops in loops': ['${{ input.n.map(x, input.n.map(y, input.n.map(z, x * y * z))) }}', { n: NUMBERS }],
  'asks of all for all': ['${{ input.n.all(x, input.n.all(y, input.n.all(z, x + y + z >= 0))) }}', { n: NUMBERS }],
  'reads JSON that is nested without end': ['${{ parse_json(input.a) }}', { a: deep('[', ']') }],
  'writes JSON of JSON': ['${{ json(json(json(json(json(json(json(json(input.a)))))))) }}', { a: '"\\'.repeat(50_000) }],
  'matches a pattern that explodes': ['${{ input.a.matches("^(a+)+$") }}', { a: `${LONG}!` }],
  'does so a hundred times in one value': [
    NUMBERS.slice(0, 100).map(() => '${{ input.n.map(x, input.n.map(y, x * y)) }}'),
    { n: NUMBERS },
  ],
  'grows a text in each of a hundred places': [
    NUMBERS.slice(0, 100)
      .map(() => '${{ input.a + input.a + input.a + input.a }}')
      .join(''),
    { a: LONG },
  ],
}

/** Calls of tools that work on what models and callers write. */
const TOOLS: readonly (readonly [tool: string, args: object])[] = [
  ['match_regex', { pattern: '^(a+)+$', text: `${'a'.repeat(50_000)}!` }],
  ['match_regex', { pattern: '(.*)*x', text: 'a'.repeat(50_000) }],
  ['render_template', { template: '{{#l}}{{#l}}{{#l}}{{#l}}{{.}}{{/l}}{{/l}}{{/l}}{{/l}}', values: { l: NUMBERS } }],
  ['render_template', { template: '{{#a}}'.repeat(20_000) + '{{/a}}'.repeat(20_000), values: { a: true } }],
  ['query_json', { json: '{}', query: '($f := function($x) { $f($x) & $f($x) }; $f("a"))' }],
  ['query_json', { json: '[]', query: '[1..9999999].([1..9999999])' }],
  ['query_json', { json: deep('[', ']'), query: '**' }],
  ['calculate', { expression: '9^9^9^9^9' }],
  ['calculate', { expression: `${'('.repeat(5_000)}1${')'.repeat(5_000)}` }],
  ['calculate', { expression: '170!!!!!!!!!!!!' }],
  [
    'diff_text',
    {
      before: NUMBERS.map(n => `a${n}`)
        .join('\n')
        .repeat(50),
      after: NUMBERS.map(n => `b${n}`)
        .join('\n')
        .repeat(50),
    },
  ],
  ['parse_csv', { text: '"'.repeat(300_000) }],
]

describe('a bomb in an expression or a template', () => {
  let service: Service
  before(async () => {
    const home = await newHome()
    await mkdir(join(home, 'workflows'))
    const names = Object.keys(EXPRESSIONS)
    for (const [at, name] of names.entries()) {
      const [value] = EXPRESSIONS[name]!
      const definition = {
        name: `bomb${at}`,
        nodes: { go: { type: 'transform', value } },
        result: { size: '${{ size(json(nodes.go)) }}' },
      }
      await writeFile(join(home, 'workflows', `bomb${at}.json`), JSON.stringify(definition))
    }
    await writeFile(
      join(home, 'svc.config.json'),
      JSON.stringify({ mcp: { server: { enabled: true } }, tools: { text: { timeout_ms: 500 } } })
    )
    service = await startService({ home, cwd: home })
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await rm(service.home, { recursive: true, force: true })
  })

  /** How long the worker let others wait at most while this was done. */
  async function stalls(work: () => Promise<unknown>): Promise<number> {
    let longest = 0
    let done = false
    const looking = (async () => {
      while (!done) {
        const begun = performance.now()
        await fetch(`${service.url}/health/live`).then(answer => answer.text())
        longest = Math.max(longest, performance.now() - begun)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    })()
    await work().finally(() => {
      done = true
    })
    await looking
    return longest
  }

  for (const [at, name] of Object.keys(EXPRESSIONS).entries())
    it(`costs its run alone where it ${name}: others do not wait for long`, async () => {
      const [, input] = EXPRESSIONS[name]!
      const longest = await stalls(async () => {
        const { status } = await post(`${service.url}/api/v1/workflows/run`, { workflow: `bomb${at}`, input })
        expect(status).to.be.below(500)
      })
      expect(longest).to.be.below(5_000)
    })

  for (const [at, [tool, args]] of TOOLS.entries())
    it(`costs its call alone in ${tool} (${at})`, async () => {
      const longest = await stalls(async () => {
        const { body } = await post(`${service.url}/tools/${tool}/call`, { arguments: args })
        if (body['success'] !== true) expect(body['error_code']).to.be.oneOf(['TOOL_EXECUTION_FAILED', 'INVALID_VALUE'])
      })
      expect(longest).to.be.below(5_000)
    })

  it('costs its call alone in edit_file, which looks for a long text in a long one', async () => {
    await writeFile(join(service.home, 'long.txt'), HALVES.a)
    const args = { path: 'long.txt', old_text: HALVES.b, new_text: '' }
    const longest = await stalls(async () => {
      const { body } = await post(`${service.url}/tools/edit_file/call`, { arguments: args })
      expect(body['success']).to.equal(false)
      expect(body['error']).to.contain('edit_file').and.not.contain('parameter')
    })
    expect(longest).to.be.below(5_000)
  })

  it('has not ended the worker', () => {
    expect(service.output()).to.not.match(/worker (ended|died|hangs)|CRASH|heap/i)
  })
})
