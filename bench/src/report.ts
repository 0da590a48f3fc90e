/** One line of a benchmark: a value and its ratio to its anchor. */
export interface Figure {
  readonly bench: string
  readonly what: string
  readonly value: number
  readonly unit: string
  readonly anchor: string
  readonly anchorValue: number
  readonly ratio: number
  /** Spread of the ratio over the rounds, as a part of it. */
  readonly spread?: number
  /** Whether more is better. */
  readonly better: 'more' | 'less'
  /** The required ratio for a release, and the goal. */
  readonly must?: number
  readonly aim?: number
  readonly note?: string
}

/** Whether a value reaches the required ratio. */
const holds = ({ ratio, better, must }: Figure): boolean =>
  must === undefined || (better === 'more' ? ratio >= must : ratio <= must)

/** `local chat, 64 connections: … req/s = 0.61 ± 0.02 × plain koa (must ≥ 0.75, aim 1.1)` */
export function lineOf(figure: Figure): string {
  const { what, value, unit, ratio, spread, anchor, anchorValue, better, must, aim, note } = figure
  const targets = [
    must === undefined ? '' : `must ${better === 'more' ? '≥' : '≤'} ${must}`,
    aim === undefined ? '' : `aim ${aim}`,
  ]
  const apart = spread === undefined ? '' : ` ± ${(spread * ratio).toFixed(2)}`
  const shown = targets.filter(Boolean).join(', ')
  const ending = `${shown === '' ? '' : ` (${shown})`}${holds(figure) ? '' : ' MISSED'}${note ? ` – ${note}` : ''}`
  return `${what}: ${number(value)} ${unit} = ${ratio.toFixed(2)}${apart} × ${anchor} (${number(anchorValue)})${ending}`
}

function number(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return value.toLocaleString('en', { maximumFractionDigits: digits })
}
