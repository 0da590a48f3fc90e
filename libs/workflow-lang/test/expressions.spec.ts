import { Environment } from '@marcbachmann/cel-js'
import { expect } from 'chai'
import type { Json } from '@svc/core/contracts'
import { expression, expressionsIn, problemsOf, template } from '../src/index.ts'
import { CONTEXT } from './context.ts'

const SCOPE = {
  input: {
    n: 2,
    f: 1.5,
    who: 'ada',
    yes: true,
    list: [3, 1, 2],
    words: ['a', 'b'],
    rows: [
      { id: 1, tag: 'x' },
      { id: 2, tag: 'y' },
    ],
    none: null,
  },
}
const INPUTS = {
  type: 'object',
  additionalProperties: false,
  properties: {
    n: { type: 'integer' },
    f: { type: 'number' },
    who: { type: 'string' },
    yes: { type: 'boolean' },
    list: { type: 'array', items: { type: 'integer' } },
    words: { type: 'array', items: { type: 'string' } },
    rows: {
      type: 'array',
      items: { type: 'object', properties: { id: { type: 'integer' }, tag: { type: 'string' } }, additionalProperties: false },
    },
    none: {},
  },
}

const value = (text: string, scope: object = SCOPE) => expression(text)({ ...scope })
const problems = (text: string) =>
  problemsOf({ name: 'x', inputs: INPUTS, nodes: { a: { type: 'give', value: `\${{ ${text} }}` } } }, CONTEXT)

/** Numbers by chance that are the same every time. */
function chances(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

type Kind = 'number' | 'text' | 'truth' | 'list'
/** Expressions of a kind; `_` stands for one of a kind that is told behind. */
const FORMS: Readonly<Record<Kind, readonly (readonly [string, ...Kind[]])[]>> = {
  number: [
    ['1'],
    ['2.5'],
    ['input.n'],
    ['input.f'],
    ['(_ + _)', 'number', 'number'],
    ['(_ * _)', 'number', 'number'],
    ['-_', 'number'],
    ['size(_)', 'list'],
    ['size(_)', 'text'],
    ['input.list[input.n - 1]'],
    ['input.rows[0].id'],
    ['(_ ? _ : _)', 'truth', 'number', 'number'],
    ['cel.bind(q, _, q + 1)', 'number'],
  ],
  text: [
    ['"x"'],
    ["'}}'"],
    ['input.who'],
    ['input.words[0]'],
    ['(_ + _)', 'text', 'text'],
    ['string(_)', 'number'],
    ['_.trim()', 'text'],
    ['_.split("a").join("-")', 'text'],
    ['input.rows.map(r, r.tag)[1]'],
    ['(_ ? _ : _)', 'truth', 'text', 'text'],
    ['json(_)', 'list'],
  ],
  truth: [
    ['true'],
    ['input.yes'],
    ['(_ == _)', 'number', 'number'],
    ['(_ < _)', 'number', 'number'],
    ['(_ == _)', 'text', 'text'],
    ['(_ && _)', 'truth', 'truth'],
    ['(_ || _)', 'truth', 'truth'],
    ['!_', 'truth'],
    ['(_ in input.words)', 'text'],
    ['_.exists(x, x > _)', 'list', 'number'],
    ['_.all(x, x > 0 || _)', 'list', 'truth'],
    ['has(input.none)'],
    ['(input.none == null)'],
    ['_.matches("a+$")', 'text'],
    ['input.rows.exists_one(r, r.id == _)', 'number'],
  ],
  list: [
    ['[1, 2]'],
    ['input.list'],
    ['[_, _]', 'number', 'number'],
    ['_.map(x, x * _)', 'list', 'number'],
    ['_.filter(x, x > _)', 'list', 'number'],
    ['_.map(x, x > 1, x + _)', 'list', 'number'],
    ['input.rows.map(r, r.id)'],
  ],
}

function made(kind: Kind, chance: (below: number) => number, depth: number): string {
  const forms = FORMS[kind].filter(([, ...kinds]) => depth > 0 || kinds.length === 0)
  const [form, ...kinds] = forms[chance(forms.length)]!
  return kinds.reduce((text, item) => text.replace('_', () => made(item, chance, depth - 1)), form)
}

const PLAIN = new Environment({ unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false, enableOptionalTypes: true })

/** What the language itself makes of it, as far as the numbers of JSON do not stand in its way. */
function plainly(text: string): Json | undefined {
  try {
    return JSON.parse(
      JSON.stringify(PLAIN.evaluate(text, SCOPE), (_, item: unknown) => (typeof item === 'bigint' ? Number(item) : item))
    ) as Json
  } catch {
    return undefined
  }
}

describe('an expression', () => {
  it('answers what the language says, and is rejected only if it is wrong, whatever it is made of', () => {
    const [chance, KINDS] = [chances(7), Object.keys(FORMS) as Kind[]]
    let compared = 0
    for (let i = 0; i < 600; i++) {
      const text = made(KINDS[chance(KINDS.length)]!, chance, 3)
      const expected = plainly(text)
      if (expected === undefined) continue
      compared += 1
      expect(JSON.parse(JSON.stringify(value(text))), text).to.deep.equal(expected)
      expect(problems(text), text).to.deep.equal([])
    }
    expect(compared).to.be.above(200)
  })

  it('mixes the numbers of JSON with those that are written, and takes them as indexes', () => {
    expect(value('2 * input.n + 1 > 3')).to.equal(true)
    expect(value('input.f % input.n')).to.equal(1.5)
    expect(value('1 + input.f')).to.equal(2.5)
    expect(value('input.list[input.n]')).to.equal(2)
    expect(value('input.n == 2 && 2 == input.n')).to.equal(true)
  })

  it('answers JSON', () => {
    expect(
      value('[input.none, timestamp("2026-01-01T00:00:00Z"), b"hi", input.?nothing, optional.of(3), {"a": 1u}]')
    ).to.deep.equal([null, '2026-01-01T00:00:00.000Z', 'aGk=', null, 3, { a: 1 }])
  })

  it('takes data whatever its keys are called', () => {
    const odd = {
      input: JSON.parse('{"a": 1, "constructor": "x", "list": [{"constructor": 2}], "__proto__": 3, "toString": 4}') as object,
    }
    expect(value('input.a + 1', odd)).to.equal(2)
    expect(value('input.constructor + "y"', odd)).to.equal('xy')
    expect(value('input.list.map(one, one.constructor)', odd)).to.deep.equal([2])
    expect(value('input', odd)).to.deep.equal(odd.input)
  })

  it('that fails says where it stands, and what to do', () => {
    const failed = (text: string) => () => value(text)
    expect(failed('input.nothing')).to.throw('failed: No such key: nothing').with.property('code', 'EXPRESSION_FAILED')
    expect(failed('input.n and true')).to.throw('is not a valid expression').with.property('hint', 'Write && instead of and')
    expect(failed('input.who.matches(input.n)')).to.throw('string.matches(double)')
    expect(failed('"x".matches("(?=a)")')).to.throw('failed: ')
    expect(failed(`1${' + 1'.repeat(10_000)}`)).to.throw('has more than 20000 characters')
  })

  const big = {
    list: Array.from({ length: 100_000 }, (_, i) => i),
    text: 'a'.repeat(1_000_000),
    object: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i])),
  }
  const ENDLESS = [
    'list.map(a, list.map(b, a + b))',
    'list.exists(a, list.exists(b, false))',
    'list.all(a, list.exists(b, false) || true)',
    'list.filter(a, a in list)',
    'list.map(a, text + "b" == text + "c")',
    'list.exists(a, object.exists(k, false))',
    'list.map(a, text.split(""))',
    'list.map(a, size(object))',
    'list.map(a, json(list))',
    'list.map(a, list + [a])',
    'list.map(a, text.contains("b" + text))',
    `${Array.from({ length: 25 }, (_, i) => `cel.bind(v${i}, ${i === 0 ? 'text + text' : `v${i - 1} + v${i - 1}`}, `).join('')}size(v24)${')'.repeat(25)}`,
    `${Array.from({ length: 25 }, (_, i) => `cel.bind(v${i}, ${i === 0 ? '[1, 2]' : `[v${i - 1}, v${i - 1}]`}, `).join('')}v24${')'.repeat(25)}`,
  ]
  for (const text of ENDLESS)
    it(`is ended when it would take for ever: ${text.slice(0, 60)}`, () => {
      const scope = { list: big.list, text: big.text, object: big.object }
      const own = text
        .replaceAll(/\blist\b/g, 'i.list')
        .replaceAll(/\btext\b/g, 'i.text')
        .replaceAll(/\bobject\b/g, 'i.object')
      const before = process.cpuUsage()
      expect(() => value(own, { i: scope }))
        .to.throw('it takes too long')
        .with.property('hint', 'Loop over fewer items, or use a node of type compute')
      const { user, system } = process.cpuUsage(before)
      expect((user + system) / 1_000_000).to.be.below(8)
      expect(value('i.n + 1', { i: { n: 1 } })).to.equal(2)
    }).timeout(60_000)

  it('goes over what a node may answer', () => {
    expect(value('i.list.filter(x, x % 2 == 0).map(x, x + 1).size()', { i: big })).to.equal(50_000)
    expect(value('i.text.matches("^(a+)+$")', { i: big })).to.equal(true)
  })
})

describe('a template', () => {
  it('has the value of its expression where there is nothing else, and text where there is', () => {
    expect(template('${{ input.list }}')(SCOPE)).to.deep.equal([3, 1, 2])
    expect(template('  ${{ input.n }} ')(SCOPE)).to.equal(2)
    expect(template('n=${{ input.n }}, ${{ input.list }}${{ input.none }}')(SCOPE)).to.equal('n=2, [3,1,2]')
    expect(template({ a: ['${{ input.who }}', 1], b: { c: true } })(SCOPE)).to.deep.equal({ a: ['ada', 1], b: { c: true } })
    expect(template('$${{ input.n }} }} ${{ "}}" }}')(SCOPE)).to.equal('${{ input.n }} }} }}')
  })

  it('finds in a text the expressions that were put there, and leaves the rest as it is', () => {
    const [chance, KINDS] = [chances(11), Object.keys(FORMS) as Kind[]]
    const REST = ['', ' ', 'text', '}} ', '$', '{', "it's ", '"', '\n', '$${{ no }}', 'é🙂']
    for (let i = 0; i < 300; i++) {
      const inside = Array.from({ length: chance(4) }, () => made(KINDS[chance(4)]!, chance, 2))
      const rest = Array.from({ length: inside.length + 1 }, () => REST[chance(REST.length)]!)
      // a dollar before a hole is what takes its meaning from it
      const pieces = rest.map(
        (item, at) => (item === '$' ? item + ' ' : item) + (inside[at] === undefined ? '' : `\${{ ${inside[at]} }}`)
      )
      expect(expressionsIn(pieces.join('')), pieces.join('')).to.deep.equal(inside)
    }
  })

  it('is found in linear time in a text that only looks like one', () => {
    expect(expressionsIn('${{ "'.repeat(20_000))).to.deep.equal([])
    expect(expressionsIn(`\${{ ${'a}'.repeat(100_000)}`)).to.deep.equal([])
  }).timeout(3_000)
})
