import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'react'
import Plot from 'uplot'
import { theme } from './theme.ts'
import { useValue } from './value.ts'
import { visible } from './visible-text.ts'

interface ChartData {
  /** Unix seconds. */
  readonly times: readonly number[]
  readonly lines: readonly { readonly name: string; readonly values: readonly (number | null)[] }[]
}

interface ChartProps extends ChartData {
  readonly label: string
  readonly valueText: (value: number) => string
}

const HEIGHT = 224
/** In `tokens.css`, in the order of the lines. */
const COLOURS = ['--chart-1', '--chart-2', '--chart-3', '--chart-4', '--chart-5', '--chart-6'] as const

const DAY_S = 86_400
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })

/** Days of a long range, and hours of a short one. */
function clockText(seconds: number, times: readonly number[]): string {
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 2 * DAY_S
  return (isLong ? day : clock).format(seconds * 1_000)
}

const LINE = { width: 1.5, spanGaps: false, points: { show: false } } as const

/** One line alone shows how much it is as an area. */
const fillOf = ({ length }: ChartData['lines'], colour: (name: string) => string) =>
  length === 1 ? { fill: colour('--accent-soft') } : {}

/** Lines over time. The canvas is drawn anew when the theme or the width changes. */
export default function Chart({ times, lines, label, valueText }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const chosen = useValue(theme)
  const text = useRef(valueText)
  text.current = valueText
  useEffect(() => {
    const place = box.current!
    const draw = () => {
      const style = getComputedStyle(place)
      const colour = (name: string) => style.getPropertyValue(name).trim()
      const axis = {
        stroke: colour('--muted'),
        grid: { stroke: colour('--border'), width: 1 },
        ticks: { show: false },
        font: `11px ${colour('--font')}`,
      }
      return new Plot(
        {
          width: Math.max(200, place.clientWidth),
          height: HEIGHT,
          padding: [8, 16, 0, 0],
          legend: { show: lines.length > 1 && lines.length <= COLOURS.length },
          cursor: { y: false },
          scales: { y: { range: (_plot, least, most) => [least < 0 ? least * 1.1 : 0, most > 0 ? most * 1.1 : 1] } },
          axes: [
            { ...axis, size: 24, values: (_plot, values) => values.map(value => clockText(value, times)) },
            { ...axis, size: 52, values: (_plot, values) => values.map(value => text.current(value)) },
          ],
          series: [
            {},
            ...lines.map(({ name }, at) => ({
              label: visible(name),
              stroke: colour(COLOURS[at % COLOURS.length]!),
              ...fillOf(lines, colour),
              ...LINE,
              value: (_plot: Plot, value: number | null) => (value === null ? '–' : text.current(value)),
            })),
          ],
        },
        [[...times], ...lines.map(({ values }) => [...values])] as Plot.AlignedData,
        place
      )
    }
    let plot = draw()
    const again = () => {
      plot.destroy()
      plot = draw()
    }
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', again)
    const sizes = new ResizeObserver(() => plot.setSize({ width: Math.max(200, place.clientWidth), height: HEIGHT }))
    sizes.observe(place)
    return () => {
      sizes.disconnect()
      dark.removeEventListener('change', again)
      plot.destroy()
    }
  }, [times, lines, chosen])
  return <div className="chart" ref={box} role="img" aria-label={label} />
}
