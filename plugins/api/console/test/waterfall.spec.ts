import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { spanKindOf } from '../page/src/span-kind.ts'
import { ticksOf } from '../page/src/time-axis.ts'

const textsOf = (total: number, most: number) => ticksOf(total, most).map(({ text }) => text)

describe('the axis of time above the spans of a trace', () => {
  it('has round steps with a unit, from 0 to the last one within the trace', () => {
    expect(textsOf(176, 4)).to.deep.equal(['0', '50 ms', '100 ms', '150 ms'])
    expect(textsOf(0.9, 5)).to.deep.equal(['0', '200 µs', '400 µs', '600 µs', '800 µs'])
    expect(textsOf(1_800, 4)).to.deep.equal(['0', '0.5 s', '1 s', '1.5 s'])
    expect(textsOf(95_000, 4)).to.deep.equal(['0', '30 s', '60 s', '90 s'])
    expect(textsOf(5_400_000, 3)).to.deep.equal(['0', '30 min', '60 min', '90 min'])
    expect(textsOf(100, 5)).to.deep.equal(['0', '20 ms', '40 ms', '60 ms', '80 ms', '100 ms'])
  })

  it('has no more steps than there is place for, however short or long the trace is', () => {
    for (let total = 0.001; total < 1e13; total *= 1.7)
      for (const most of [1, 2, 3, 5, 8, 13]) {
        const ticks = ticksOf(total, most)
        expect(ticks.length, `${total} ms in ${most} steps`).to.be.within(1, most + 1)
        expect(ticks.at(-1)!.at).to.be.at.most(total * (1 + 1e-6))
      }
    expect(textsOf(0, 5)).to.deep.equal(['0'])
    expect(textsOf(Number.NaN, 5)).to.deep.equal(['0'])
  })
})

describe('the kind of a span', () => {
  const kindOf = (attributes: Record<string, unknown>, kind = 'internal') => spanKindOf({ kind, attributes })

  it('follows from what svc writes into its attributes', () => {
    expect(kindOf({ 'http.route': '/api/v1/chat' }, 'server')).to.equal('request')
    expect(kindOf({}, 'consumer')).to.equal('request')
    expect(kindOf({ 'gen_ai.operation.name': 'invoke_agent' })).to.equal('turn')
    expect(kindOf({ 'gen_ai.operation.name': 'invoke_workflow' })).to.equal('step')
    expect(kindOf({ 'svc.workflow.step': 'find' })).to.equal('step')
    expect(kindOf({ 'gen_ai.operation.name': 'chat' }, 'client')).to.equal('model')
    expect(kindOf({ 'gen_ai.operation.name': 'execute_tool', 'svc.plugin': 'shop' })).to.equal('tool')
    expect(kindOf({ 'gen_ai.tool.name': 'ship' }, 'client')).to.equal('tool')
    expect(kindOf({ 'svc.plugin': 'usage', 'svc.hook': 'chat.end' })).to.equal('hook')
    expect(kindOf({})).to.equal('other')
    expect(kindOf({ 'gen_ai.operation.name': 'constructor' })).to.equal('other')
  })
})

/** The values of tokens in one theme. */
function tokensOf(sheet: string): ReadonlyMap<string, string> {
  return new Map([...sheet.matchAll(/(--[\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name!, value!]))
}

function luminanceOf(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map(at => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

function contrastOf(one: string, other: string): number {
  const [light, dark] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => b - a)
  return (light! + 0.05) / (dark! + 0.05)
}

describe('the colours of the kinds of spans', () => {
  const sheet = readFileSync(new URL('../page/src/tokens.css', import.meta.url), 'utf8')
  const [light = '', dark = ''] = sheet.split('@media (prefers-color-scheme: dark)')
  const themes = { light: tokensOf(light), dark: tokensOf(dark.slice(0, dark.indexOf('\n}\n'))) }
  const BARS = [...Array.from({ length: 6 }, (_, at) => `--chart-${at + 1}`), '--bad']

  for (const [theme, tokens] of Object.entries(themes))
    it(`have a contrast of 3:1 to each row behind them: ${theme}`, () => {
      for (const bar of BARS)
        for (const row of ['--surface', '--hover', '--accent-soft'])
          expect(contrastOf(tokens.get(bar)!, tokens.get(row)!), `${bar} on ${row}`).to.be.at.least(3)
    })
})
