// Not a unit test: expressions run in a process.
import { toolKit, type ToolSamples } from '@svc/testing'
import { open } from './support/text.ts'

const EVIL = { pattern: '^(a+)+$', text: `${'a'.repeat(40)}b` }

const SAMPLES: Readonly<Record<string, ToolSamples>> = {
  query_json: {
    good: [{ args: { json: '{"a":[1,2]}', query: '$sum(a)' } }, { args: { json: '[]', query: 'nothing' } }],
    bad: [
      { args: { json: '{"a":', query: 'a' }, message: /not valid JSON/ },
      { args: { json: '{}', query: 'a[' }, message: /query fails/ },
      { args: { json: '{}', query: '$sum' }, message: /function/ },
      { args: { json: '{}', query: '($f := function($x) { $f($x + 1) + 1 }; $f(1))' }, message: /stopped|stack/i },
      { args: { json: '{}', query: '[1..10000000]' }, message: /stopped|fails|characters/ },
      { args: { json: {}, query: 'a' } },
      { args: { json: '{}' } },
    ],
    slow: { args: { json: '{}', query: '($f := function($x) { $f($x + 1) }; $f(1))' } },
  },
  parse_csv: {
    good: [{ args: { text: 'a,b\n1,"2\n3"\n' } }, { args: { text: '1;2\n3;4', header: false } }],
    bad: [
      { args: { text: 'a,b\n1' }, message: /line 2/ },
      { args: { text: 'a,b\n"1,2' }, message: /cannot be read/ },
      { args: { text: 'a', delimiter: '' } },
      { args: { text: 'a', limit: 0 } },
    ],
  },
  diff_text: {
    good: [{ args: { before: 'a\nb\n', after: 'a\nc\n' } }, { args: { before: 'a', after: 'a' } }],
    bad: [
      { args: { before: 'a' } },
      { args: { before: 'a', after: 'b', context: -1 } },
      { args: { before: 'a', after: 'b', name: 'a\nb' } },
    ],
  },
  match_regex: {
    good: [{ args: { pattern: '(\\w)(?<n>\\d)?', text: 'a1 b' } }, { args: { pattern: 'x', text: '' } }],
    bad: [
      { args: { pattern: '(', text: 'a' }, message: /Unterminated group/ },
      { args: { pattern: 'a', text: 'a', flags: 'uv' }, message: /flags/ },
      { args: EVIL, message: /did not end within .* ms and was stopped/ },
      { args: { pattern: 'a', text: 'a', flags: 'y' } },
      { args: { pattern: '', text: 'a' } },
      { args: { pattern: 'a', text: 'x'.repeat(1_000_001) } },
    ],
    slow: { args: EVIL },
  },
  render_template: {
    good: [{ args: { template: 'Hi {{name}}', values: { name: 'Ada' } } }, { args: { template: '{{x}}', values: {} } }],
    bad: [
      { args: { template: '{{#a}}', values: {} }, message: /Unclosed section/ },
      { args: { template: '{{a', values: {} }, message: /Unclosed tag/ },
      { args: { template: 'a', values: [] } },
      { args: { template: 'a' } },
    ],
  },
  hash_text: {
    good: [{ args: { text: 'abc' } }, { args: { text: '', algorithm: 'sha3-512', encoding: 'base64' } }],
    bad: [{ args: { text: '\ud800' }, message: /half a character/ }, { args: { text: 'a', algorithm: 'crc' } }, { args: {} }],
  },
  encode_base64: {
    good: [{ args: { text: 'äß𝕏' } }, { args: { text: '??>', url_safe: true } }],
    bad: [{ args: { text: 'a\udc00' }, message: /half a character/ }, { args: { text: 1 } }],
  },
  decode_base64: {
    good: [{ args: { base64: 'w6TDn/CdlY8=' } }, { args: { base64: 'w6TDn_CdlY8' } }, { args: { base64: '' } }],
    bad: [
      { args: { base64: 'YQ=' }, message: /length/ },
      { args: { base64: 'YWJjZ' }, message: /length/ },
      { args: { base64: 'YW Jj' }, message: /contains " " at position 2/ },
      { args: { base64: 'YR==' }, message: /leftover bits/ },
      { args: { base64: '+-==' }, message: /two alphabets/ },
      { args: { base64: '=YQ=' }, message: /contains "="/ },
      { args: { base64: '/9j/4A==' }, message: /4 bytes, starting with hex ffd8ffe0/ },
    ],
  },
  calculate: {
    good: [{ args: { expression: '(1 + 2) * 3 ^ 2' } }, { args: { expression: '1 < 2' } }],
    bad: [
      { args: { expression: '1 / 0' }, message: /infinite/ },
      { args: { expression: 'sqrt(-1)' }, message: /is undefined/ },
      { args: { expression: '1 +' }, message: /invalid expression/ },
      { args: { expression: 'x' }, message: /x/ },
      { args: { expression: '"a"' }, message: /not a number/ },
      { args: { expression: '('.repeat(2000) }, message: /stopped|cannot be calculated/ },
      { args: { expression: '' } },
    ],
  },
}

for (const [name, samples] of Object.entries(SAMPLES))
  describe(`${name}, by the tool kit`, () => {
    // what is stopped needs its time: these tests should not
    for (const testCase of toolKit(() => open(name, { timeout_ms: 500 }), samples))
      if (testCase.skipped === undefined) it(testCase.title, testCase.run)
  })
