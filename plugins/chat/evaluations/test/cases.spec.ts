import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DOMParser } from '@xmldom/xmldom'
import type { EvaluationResult } from '@svc/core/contracts'
import { expect } from 'chai'
import { LIMITS, readCases, requestProblems } from '../src/cases.ts'
import { junitOf, reportLines } from '../src/output.ts'
import { cutResults, reportOf } from '../src/report.ts'

/** The problems of a file as `line path message`. */
const problemsIn = async (text: string) =>
  (await readCases(text)).problems.map(({ line, path, message }) => `${line} ${path} ${message}`)

const FILE = `# cases
judge: { profile: careful }
cases:
  - name: greets
    message: Hello
    checks:
      - contains: [Hello, said]
      - regex: "^You"
  - name: thinks
    messages:
      - { role: user, content: "2 + 2" }
    record: [{ tool: calculate, result: 4 }]
    repeat: 3
    checks:
      - schema: { type: object }
`

describe('files of cases', () => {
  it('are read from YAML and JSON', async () => {
    const { request, problems } = await readCases(FILE)
    expect(problems).to.deep.equal([])
    expect(request.cases!.map(({ name }) => name)).to.deep.equal(['greets', 'thinks'])
    expect(await problemsIn(JSON.stringify(request))).to.deep.equal([])
  })

  it('have problems with their lines, all at once', async () => {
    const text = FILE.replace('message: Hello', 'mesage: Hello').replace('regex:', 'regexp:').replace('repeat: 3', 'repeat: 3000')
    const found = (await readCases(text)).problems
    expect(found.map(({ line, path }) => `${line} ${path}`)).to.deep.equal([
      '5 cases[0].mesage',
      '8 cases[0].checks[1].regexp',
      '13 cases[1].repeat',
    ])
    expect(found[0]!.hint).to.equal('did you mean "message"?')
    expect(found[1]!.hint).to.equal('did you mean "regex"?')
  })

  for (const [what, text, problem] of [
    ['nothing', '', '1  must be an object'],
    ['a list', '- a', '1  must be an object'],
    ['no case', 'cases: []', 'cases must'],
    ['a syntax error', 'cases: [', '1 '],
    ['a duplicate key', 'cases: [{name: a, message: b}]\ncases: []', '2 cases is a duplicate key'],
    ['a duplicate name', 'cases:\n- {name: a, message: b}\n- {name: a, message: c}', '3 cases[1].name is the name of another'],
    ['no input', 'cases: [{name: a}]', 'must have either message or messages'],
    [
      'two inputs',
      'cases: [{name: a, message: b, messages: [{role: user, content: c}]}]',
      'must have either message or messages',
    ],
    ['a conversation that ends with a reply', 'cases: [{name: a, messages: [{role: assistant, content: c}]}]', 'must end with'],
    ['a check with two members', 'cases: [{name: a, message: b, checks: [{exact: a, contains: b}]}]', 'cases[0].checks[0]'],
    ['an empty check', 'cases: [{name: a, message: b, checks: [{}]}]', 'cases[0].checks[0]'],
    ['a record without a result', 'cases: [{name: a, message: b, record: [{tool: t}]}]', 'must have either result or error'],
    [
      'a pattern with a back-reference',
      'cases: [{name: a, message: b, checks: [{regex: "(a+)\\\\1"}]}]',
      'checks[0].regex cannot be used',
    ],
    ['a pattern that is not valid', 'cases: [{name: a, message: b, checks: [{regex: "("}]}]', 'checks[0].regex cannot be used'],
    [
      'a pattern with a huge program',
      'cases: [{name: a, message: b, checks: [{regex: "((a{1,100}){1,100}){1,100}"}]}]',
      'cannot be used',
    ],
    ['a schema that is not valid', 'cases: [{name: a, message: b, checks: [{schema: {type: 7}}]}]', 'is not a valid JSON Schema'],
    ['a name of the prototype', 'cases: [{name: a, message: b, __proto__: {}}]', 'cases[0].__proto__'],
    [
      'too many turns',
      `repeat: 20\ncases:\n${Array.from({ length: 51 }, (_, at) => `- {name: c${at}, message: b}`).join('\n')}`,
      'would run 1020 turns',
    ],
    ['deep lists', `cases: ${'['.repeat(100_000)}`, 'is nested too deeply'],
    ['deep values', `cases: [{name: a, message: b, checks: [{schema: ${'{"not":'.repeat(99)}{}${'}'.repeat(99)}}]}]`, 'levels'],
  ] as const)
    it(`are refused with ${what}`, async () => {
      const found = await problemsIn(text)
      expect(found.join('\n')).to.include(problem)
    })

  it('with aliases that multiply are refused in time', async () => {
    const names = 'abcdefghi'.split('')
    const lines = names.map(
      (name, at) =>
        `${name}: &${name} [${Array(9)
          .fill(at === 0 ? 'x' : `*${names[at - 1]}`)
          .join(', ')}]`
    )
    const begun = performance.now()
    const found = await problemsIn(`${lines.join('\n')}\ncases: *i`)
    expect(found.join('\n')).to.include('too large')
    expect(performance.now() - begun).to.be.below(5_000)
  })

  it('that are too long are refused', async () => {
    expect((await problemsIn(`# ${'x'.repeat(1_100_000)}`)).join()).to.include('is longer than')
  })

  it('cannot slow svc down with a pattern', async () => {
    const { problems } = await readCases('cases: [{name: a, message: b, checks: [{regex: "^(a+)+$"}, {regex: "(x+x+)+y"}]}]')
    expect(problems).to.deep.equal([])
  })
})

describe('requests of evaluations', () => {
  const textsOf = async (value: unknown) =>
    (await requestProblems(value)).map(({ path, message }) => `${path} ${message}`).join('\n')

  it('have either cases or a replay', async () => {
    expect(await textsOf({})).to.include('is required, or replay')
    expect(await textsOf({ cases: [{ name: 'a', message: 'b' }], replay: { since: '2026-01-01T00:00:00Z' } })).to.include(
      'not both'
    )
    expect(await textsOf({ replay: { since: '2026-01-01T00:00:00Z' } })).to.equal('')
    expect(await textsOf({ replay: { since: 'yesterday' } })).to.include('replay.since must be a time')
    expect(await textsOf({ replay: { since: '2026-13-41T00:00:00Z' } })).to.include('is not a time of the calendar')
    expect(await textsOf({ replay: { since: '2026-01-01T00:00:00Z', limit: 101 } })).to.include('replay.limit')
  })

  it('do not stop other work while they are checked', async () => {
    const patterns = Array.from({ length: 1_000 }, (_, at) => `${at}(${'[a-z]+\\d{2,9}'.repeat(60)}|x{1,200})`)
    const cases = Array.from({ length: 50 }, (_, at) => ({
      name: `c${at}`,
      message: 'b',
      checks: patterns.slice(at * 20, at * 20 + 20).map(regex => ({ regex })),
    }))
    const histogram = monitorEventLoopDelay({ resolution: 1 })
    histogram.enable()
    expect(await textsOf({ cases })).to.equal('')
    histogram.disable()
    expect(histogram.max / 1e6, 'milliseconds').to.be.below(1_000)
    expect(await textsOf({ cases: [...cases, { ...cases[0], name: 'more' }] })).to.include('the maximum is 1000')
  }).timeout(120_000)

  it('have schemas of a limited size', async () => {
    const schema = { enum: ['x'.repeat(20_000)] }
    expect(await textsOf({ cases: [{ name: 'a', message: 'b', checks: [{ schema }] }] })).to.include(
      'has more than 20000 characters'
    )
  })

  it('that are too deep for the stack are refused', async () => {
    let deep: unknown = {}
    for (let level = 0; level < 200_000; level++) deep = { not: deep }
    expect(await textsOf({ cases: [{ name: 'a', message: 'b', checks: [{ schema: deep }] }] })).to.include('nested too deeply')
  })
})

const result = (more: Partial<EvaluationResult> = {}): EvaluationResult => ({
  case: 'one',
  target: 'a',
  repeat: 1,
  status: 'passed',
  reply: 'fine',
  checks: [],
  tokens: { input: 10, output: 5 },
  duration_ms: 100,
  tools: [],
  unrecorded: 0,
  ...more,
})
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007</failure>]]><!-- & "quoted" \'x\' \u0000 \ud800 \u202e evil\r\nnext\u0085'

describe('reports of evaluations', () => {
  const hostile = result({
    case: `case ${HOSTILE}`,
    target: `t ${HOSTILE}`,
    status: 'failed',
    reply: HOSTILE,
    checks: [{ check: 'contains', passed: false, reason: HOSTILE }],
  })
  const broken = result({
    case: hostile.case,
    target: hostile.target,
    repeat: 2,
    status: 'error',
    error: { code: 'MODEL_FAILED', message: HOSTILE, details: {} },
  })
  const report = reportOf({ cases: [hostile.case], targets: [hostile.target], total: 2 }, [hostile, broken])

  it('steer no terminal', () => {
    const text = reportLines(report).join('\n')
    expect(text).to.include('contains:')
    expect(text.replaceAll('\n', '')).not.to.match(/[\p{Cc}\p{Cf}]/u)
  })

  it('are valid JUnit whatever a reply contains', () => {
    const xml = junitOf(report)
    expect(xml, 'characters of XML 1.0, without those that steer a terminal').not.to.match(/[^\P{Cc}\n]|\p{Cs}/u)
    // U+FFFD is a warning
    const onError = (level: string, message: string) => {
      if (level !== 'warning') throw new Error(message)
    }
    const document = new DOMParser({ onError }).parseFromString(xml, 'text/xml')
    const [suite] = [...document.getElementsByTagName('testsuite')]
    expect(['tests', 'failures', 'errors'].map(name => suite!.getAttribute(name))).to.deep.equal(['2', '1', '1'])
    expect(suite!.getAttribute('name')).to.include('</failure>]]><!-- & "quoted" \'x\'')
    expect([...document.getElementsByTagName('testcase')]).to.have.length(2)
    const [failure] = [...document.getElementsByTagName('failure')]
    expect(failure!.textContent).to.include('</failure>]]><!-- & "quoted" \'x\'').and.to.include('\r\nnext')
    expect([...document.getElementsByTagName('error')]).to.have.length(1)
  })

  it('compare two targets by pass rate, then by score', () => {
    const check = (passed: boolean, score?: number) => [{ check: 'judge', passed, ...(score === undefined ? {} : { score }) }]
    const made = reportOf({ cases: ['x', 'y'], targets: ['a', 'b'], total: 6 }, [
      result({ case: 'x', target: 'a', checks: check(true, 0.7), duration_ms: 10 }),
      result({ case: 'x', target: 'a', repeat: 2, checks: check(true, 0.7), duration_ms: 20 }),
      result({ case: 'x', target: 'b', checks: check(true, 0.9), duration_ms: 30 }),
      result({ case: 'x', target: 'b', repeat: 2, status: 'failed', checks: check(false, 0.9), duration_ms: 40 }),
      result({ case: 'y', target: 'b', checks: check(true, 0.9), cost: 0.25 }),
      result({ case: 'y', target: 'a', checks: check(true, 0.8), cost: 0.5 }),
    ])
    expect(made.complete).to.equal(true)
    expect(made.cases.map(({ better }) => better)).to.deep.equal(['a', undefined])
    expect(made.cases[0]!.checks[0]).to.deep.equal({
      check: 'judge',
      targets: [
        { target: 'a', pass_rate: 1, score: 0.7 },
        { target: 'b', pass_rate: 0.5, score: 0.9 },
      ],
      better: 'a',
    })
    expect(made.cases[1]!.checks[0]!.better).to.equal('b')
    expect(made.better).to.deep.equal({
      cases: [
        { target: 'a', cases: 1 },
        { target: 'b', cases: 0 },
      ],
      ties: 1,
    })
    expect(made.targets[0]).to.deep.include({ passed: 3, pass_rate: 1, cost: 0.5, latency_ms: { p50: 20, p95: 100 } })
    expect(made.targets[1]).to.deep.include({ passed: 2, failed: 1, pass_rate: 0.6667, cost: 0.25 })
  })

  it('with the largest number of results fit into a job', () => {
    const long = 'x'.repeat(4_000)
    const checks = Array.from({ length: 5 }, () => ({
      check: 'not_contains',
      passed: false,
      score: 0.123,
      reason: long.slice(0, 500),
    }))
    const results = Array.from({ length: LIMITS.samples }, (_, at) =>
      result({ repeat: at, reply: long, checks, tools: ['tool'] })
    )
    expect(JSON.stringify(cutResults(results, 900_000)).length).to.be.below(900_000)
  })
})
