import { expect } from 'chai'
import { parseText } from '../config/lines.ts'

const KEYS_LIKE_TEXTS =
  '{\n  "a": ["b\\": c", "{\\"d\\": 1}", "\\\\"],\n  "__proto__": { "": 1e400, "é:": "\\ud83d\\ude00" },\n  "e": []\n}'

describe('the lines of JSON and YAML', () => {
  it('reads JSON as its own parser does, with the line of each key', () => {
    const { value, errors, line } = parseText(KEYS_LIKE_TEXTS)
    expect(JSON.stringify(value)).to.equal(JSON.stringify(JSON.parse(KEYS_LIKE_TEXTS)))
    expect(Object.keys(value as object)).to.deep.equal(['a', '__proto__', 'e'])
    expect(errors).to.deep.equal([])
    expect([line(['a', '1']), line(['__proto__', 'é:']), line(['e', 'none']), line(['none'])]).to.deep.equal([2, 3, 4, undefined])
  })

  for (const text of ['{ "a": { "b": 1,\n"b": 2 } }', '[{ "a": 1,\n"\\u0061": 2 }]', '{ "a": 1,\n"a": 1 }'])
    it(`refuses the same key twice: ${JSON.stringify(text)}`, () => {
      const { value, errors } = parseText(text)
      expect(value).to.equal(undefined)
      expect(errors.map(error => error.message.includes('unique') && error.line)).to.deep.equal([2])
    })

  it('takes what is not quite JSON for YAML', () => {
    for (const text of ['{ "a": 1, }', '\uFEFF{ "a": 1 }', '{ "a": 1 } # one', "{ 'a': 1 }"])
      expect(parseText(text)).to.deep.include({ value: { a: 1 }, errors: [] })
    expect(parseText('').value).to.equal(null)
  })
})
