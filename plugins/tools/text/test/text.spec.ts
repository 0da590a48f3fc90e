// Not a unit test: expressions run in a process.
import { expect } from 'chai'
import { call, describeTool, open, refusal } from './support/text.ts'

const ORDERS = JSON.stringify({
  orders: [
    { id: 1, items: [{ price: 5 }, { price: 7 }] },
    { id: 2, items: [{ price: 20 }] },
  ],
})
const query = async (text: string, json = ORDERS) => (await call('query_json', { json, query: text })).data.result
const calculate = async (expression: string) => (await call('calculate', { expression })).data.result
const render = async (template: string, values: object, more = {}) =>
  (await call('render_template', { template, values: values as never, ...more })).data

describeTool('query_json', () => {
  it('selects, filters, counts and reshapes', async () => {
    expect(await query('orders.items.price')).to.deep.equal([5, 7, 20])
    expect(await query('orders[$sum(items.price) > 15].id')).to.equal(2)
    expect(await query('{"n": $count(orders)}')).to.deep.equal({ n: 2 })
  })

  it('says that nothing matches, which is not null', async () => {
    expect(await call('query_json', { json: ORDERS, query: 'x.y' })).to.deep.equal({
      data: { found: false, result: null },
      text: '[Nothing matches the query.]',
    })
    expect((await call('query_json', { json: '{"a":null}', query: 'a' })).data).to.deep.equal({ found: true, result: null })
  })

  it('leads to no prototype and no code', async () => {
    for (const text of ['constructor', '$sum.constructor', 'orders.__proto__', '$lookup($, "constructor")', '$string.prototype'])
      expect(await query(text), text).to.equal(null)
    expect((await refusal(query('$string.constructor("return process")()'))).code).to.equal('QUERY_INVALID')
  })
})

describeTool('parse_csv', () => {
  it('reads quotes, line breaks in fields, a byte order mark and the delimiter by itself', async () => {
    const { data } = await call('parse_csv', { text: '\ufeffname;note\r\n"Ada; L.";"two\nlines"\r\n\r\nBob;"says ""hi"""\r\n' })
    expect(data).to.deep.equal({
      columns: ['name', 'note'],
      rows: [
        ['Ada; L.', 'two\nlines'],
        ['Bob', 'says "hi"'],
      ],
      row_count: 2,
      offset: 0,
      delimiter: ';',
    })
  })

  it('answers some rows, and where to read on', async () => {
    const text = `n\n${Array.from({ length: 500 }, (_, at) => at).join('\n')}`
    const first = (await call('parse_csv', { text })).data as { rows: string[][]; next_offset?: number; row_count: number }
    expect(first).to.include({ next_offset: 200, row_count: 500 })
    const last = (await call('parse_csv', { text, offset: 498 })).data as { rows: string[][]; next_offset?: number }
    expect(last.rows).to.deep.equal([['498'], ['499']])
    expect(last).to.not.have.property('next_offset')
    expect((await call('parse_csv', { text: '' })).data).to.deep.include({ rows: [], row_count: 0 })
  })
})

describeTool('diff_text', () => {
  it('answers a unified diff, and counts', async () => {
    const { data, text } = await call('diff_text', { before: 'a\nb\nc\n', after: 'a\nB\nc\nd\n', name: 'x.txt', context: 0 })
    expect(data).to.include({ equal: false, added: 2, removed: 1 })
    expect(text).to.equal('--- a/x.txt\n+++ b/x.txt\n@@ -2,1 +2,1 @@\n-b\n+B\n@@ -3,0 +4,1 @@\n+d\n')
  })

  it('is stopped where two texts have nothing in common', async () => {
    const lines = (seed: number) => Array.from({ length: 80_000 }, (_, at) => (at * seed) % 99_991).join('\n')
    const { code } = await refusal(call('diff_text', { before: lines(7), after: lines(13) }, { timeout_ms: 200 }))
    expect(code).to.equal('WORK_TIMEOUT')
  })
})

describeTool('match_regex', () => {
  it('tells matches with their places, groups and names', async () => {
    const { data } = await call('match_regex', { pattern: '(?<user>\\w+)@(\\w+)?', text: 'ada@home,\nbob@', flags: 'i' })
    expect(data.matches).to.deep.equal([
      { match: 'ada@home', index: 0, line: 1, groups: ['ada', 'home'], named: { user: 'ada' } },
      { match: 'bob@', index: 10, line: 2, groups: ['bob', null], named: { user: 'bob' } },
    ])
  })

  it('answers so many, and says that there are more', async () => {
    const { data } = await call('match_regex', { pattern: '', text: 'abc', max_matches: 2 })
    expect(data).to.include({ count: 2, more: true })
    expect((await call('match_regex', { pattern: '', text: 'abc', flags: 'u' })).data).to.include({ count: 4, more: false })
  })

  it('refuses matches that are too many to read', async () => {
    for (const [pattern, characters] of [
      ['(?=(x*))', 10_000],
      [`${'()'.repeat(4900)}x`, 1000],
      [`(?<${'n'.repeat(2000)}>)x`, 1000],
    ] as const) {
      const { code } = await refusal(call('match_regex', { pattern, text: 'x'.repeat(characters), max_matches: 1000 }))
      expect(code).to.equal('RESULT_TOO_LARGE')
    }
  })

  it('does not hold others up while one explodes', async () => {
    const { tool, close } = await open('match_regex', { timeout_ms: 60_000 })
    const controller = new AbortController()
    const ctx = { signal: controller.signal, principal: { id: 'x', scopes: [] }, requestId: 'x' } as never
    const evil = refusal(tool.call({ pattern: '^(a+)+$', text: `${'a'.repeat(40)}b` }, ctx))
    const { structured } = await tool.call({ pattern: 'b', text: 'abc' }, {
      ...(ctx as object),
      signal: new AbortController().signal,
    } as never)
    expect(structured).to.include({ count: 1 })
    controller.abort(new Error('enough'))
    expect((await evil).message).to.equal('enough')
    await close()
  })
})

describeTool('render_template', () => {
  it('fills in values, lists and sections, and escapes for HTML only when asked', async () => {
    const values = { name: 'A & B', list: [{ n: 1 }, { n: 2 }], deep: { x: { y: 'z' } }, none: [], some: { a: 1 } }
    const template =
      '{{name}} {{#list}}{{n}}{{name}},{{/list}} {{deep.x.y}} {{^none}}none{{/none}} {{some}} {{{some}}} {{#list}}{{.}}{{/list}}'
    expect(
      (await render('{{name}} {{#list}}{{n}},{{/list}} {{deep.x.y}} {{^none}}none{{/none}} {{some}}', values)).text
    ).to.equal('A & B 1,2, z none {"a":1}')
    expect((await render(template, values, { escape_html: true })).text).to.include('A &amp; B 1A &amp; B,')
  })

  it('names what has no value', async () => {
    const { data, text } = await call('render_template', { template: '{{a}}-{{b.c}}-{{d}}', values: { a: 1, b: {} } })
    expect(data).to.deep.equal({ text: '1--', missing: ['b.c', 'd'] })
    expect(text).to.include('[Names without a value: b.c, d]')
  })

  it('knows no prototype, no method of texts and lists, no partial and no code', async () => {
    const values = JSON.parse('{"text":"abc","list":[1],"own":{"constructor":"mine","__proto__":"yes"}}')
    const template =
      '{{constructor}}{{text.length}}{{list.map}}{{toString}}{{__proto__}}{{own.valueOf}}{{> other}}{{#text.constructor}}x{{/text.constructor}}'
    expect((await render(template, values)).text).to.equal('')
    expect((await render('{{own.constructor}}', values)).text).to.equal('mine')
  })

  it('refuses a text that grows without measure', async () => {
    const list = Array(1000).fill({ x: 'xxxxxxxxxx' })
    const template = '{{#list}}{{#list}}{{x}}{{/list}}{{/list}}'
    expect((await refusal(render(template, { list }, {}))).code).to.be.oneOf(['RESULT_TOO_LARGE', 'WORK_TIMEOUT', 'WORK_MEMORY'])
  })
})

describeTool('hash_text and base64', () => {
  it('hash the UTF-8 bytes', async () => {
    expect((await call('hash_text', { text: 'abc' })).text).to.equal(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    )
    expect((await call('hash_text', { text: 'ä', algorithm: 'md5' })).data).to.deep.equal({
      hash: '8419b71c87a225a2c70b50486fbee545',
      algorithm: 'md5',
      bytes: 2,
    })
  })

  it('decode what they encode, in both alphabets', async () => {
    for (const url_safe of [true, false])
      for (const text of ['', 'a', 'ab', 'abc', 'äß𝕏?>~', '\ufeffmark', '\0']) {
        const { text: base64 } = await call('encode_base64', { text, url_safe })
        expect((await call('decode_base64', { base64 })).data.text).to.equal(text)
      }
  })
})

describeTool('calculate', () => {
  it('calculates as a person would', async () => {
    expect(await calculate('0.1 + 0.2')).to.equal(0.3)
    expect(await calculate('(1 + 2) * 3 ^ 2 % 5')).to.equal(2)
    expect(await calculate('2 ^ 3 ^ 2')).to.equal(512)
    expect(await calculate('-2 ^ 2')).to.equal(-4)
    expect(await calculate('5! + gcd(12, 18) + lcm(4, 6)')).to.equal(138)
    expect(await calculate('roundTo(log10(1000) + sin(PI / 2), 2)')).to.equal(4)
    expect(await calculate('1 < 2 and not (2 < 1)')).to.equal(true)
    expect((await call('calculate', { expression: '2^64' })).text).to.match(
      /^18446744073709552000\n\[only the first 15 digits are exact\]$/
    )
  })

  it('knows numbers and nothing else', async () => {
    const no = [
      'x = 1',
      'f(x) = x',
      '[1, 2]',
      '"a" || "b"',
      'random()',
      'map(abs, [1])',
      'constructor',
      'constructor(1)',
      'toString()',
      '__proto__',
      '(1).constructor',
      'sum([1])',
      'log(2)',

      'abs',
      'gcd(0.5, 1)',
      'gcd()',
    ]
    for (const expression of no) expect((await refusal(calculate(expression))).code, expression).to.equal('EXPRESSION_INVALID')
  })

  it('ends with what is too much', async () => {
    expect((await refusal(calculate('9 ^ 9 ^ 9'))).message).to.include('infinite')
    expect((await refusal(calculate(`${'('.repeat(900)}1${')'.repeat(900)}${'+1'.repeat(99)}${'^'}`))).code).to.be.oneOf([
      'EXPRESSION_INVALID',
      'WORK_MEMORY',
    ])
    expect((await refusal(calculate('1e300!'))).message).to.match(/infinite|no such number/)
  })
})
