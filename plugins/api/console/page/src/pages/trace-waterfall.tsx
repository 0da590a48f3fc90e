import { useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { traces } from '../router.tsx'
import { SPAN_KINDS, spanKindOf } from '../span-kind.ts'
import { durationOf } from '../states.tsx'
import { type Tick, ticksOf } from '../time-axis.ts'
import type { Row } from '../trace-rows.ts'
import { SpanDetail } from './trace-span.tsx'

const ROW = 32
/** Deeper spans are not indented further, so that their names stay visible. */
const DEEPEST = 12
const INDENT = 12
const AXIS = 28

interface WaterfallProps {
  readonly rows: readonly Row[]
  /** Milliseconds of the whole trace. */
  readonly total: number
}

/** The row of the address, or the first one. */
function useSelectedRow(rows: readonly Row[]) {
  const search = traces.useSearch()
  const navigate = useNavigate()
  const at = Math.max(
    0,
    rows.findIndex(({ span }) => span.span_id === search.span)
  )
  const select = (index: number) => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, index))]
    if (row) void navigate({ to: '/traces', search: { ...search, span: row.span.span_id }, replace: true })
  }
  return { at, asked: search.span, select }
}

export function Waterfall({ rows, total }: WaterfallProps) {
  const { at, asked, select } = useSelectedRow(rows)
  const box = useRef<HTMLDivElement>(null)
  const view = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 10,
    scrollMargin: AXIS,
    scrollPaddingStart: AXIS,
  })
  const isShown = useRef(asked === undefined)
  useEffect(() => {
    // the address names a span that can be far down, and that is not read yet
    if (isShown.current || rows[at]?.span.span_id !== asked) return
    isShown.current = true
    view.scrollToIndex(at, { align: 'center' })
  }, [rows, at, asked, view])
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }
    const index = steps[event.key]
    if (index === undefined) return
    event.preventDefault()
    select(index)
    view.scrollToIndex(Math.min(rows.length - 1, Math.max(0, index)))
  }
  const selected = rows[at]
  const scale = useScale(total)
  return (
    <>
      <div
        className="reader-scroll waterfall"
        ref={box}
        role="listbox"
        aria-label="Spans"
        tabIndex={0}
        onKeyDown={onKeyDown}
        aria-activedescendant={selected && `span-${selected.span.span_id}`}
      >
        <TimeAxis total={total} scale={scale} />
        <div role="presentation" className="reader-list" style={{ height: view.getTotalSize(), ...scale.lines }}>
          {view.getVirtualItems().map(({ index, start }) => (
            <SpanRow
              key={rows[index]!.span.span_id}
              row={rows[index]!}
              top={start - AXIS}
              total={total}
              isSelected={index === at}
              onSelect={() => select(index)}
            />
          ))}
        </div>
      </div>
      {selected && <SpanDetail span={selected.span} />}
    </>
  )
}

const partOf = (ms: number, total: number) => `${total > 0 ? (ms / total) * 100 : 0}%`

/** Between two numbers of the axis, in pixels. */
const TICK_WIDTH = 72

/** The number of pixels of an element. */
function useWidth(): readonly [(element: HTMLElement | null) => void, number] {
  const [element, setElement] = useState<HTMLElement | null>(null)
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    if (!element) return
    const measure = () => setWidth(element.clientWidth)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [element])
  return [setElement, width]
}

interface Scale {
  readonly ticks: readonly Tick[]
  /** Takes the element above the bars. */
  readonly line: (element: HTMLElement | null) => void
  /** Of that element, in pixels. */
  readonly width: number
  /** What the rows need to draw the lines of the ticks. */
  readonly lines: CSSProperties
}

function useScale(total: number): Scale {
  const [line, width] = useWidth()
  const ticks = useMemo(() => ticksOf(total, Math.max(2, Math.floor(width / TICK_WIDTH))), [total, width])
  return { ticks, line, width, lines: { '--tick': partOf(ticks[1]?.at ?? total, total) } as CSSProperties }
}

interface AxisProps {
  readonly total: number
  readonly scale: Scale
}

/** The time above the bars. It stays there when the spans scroll; each row says its own duration. */
function TimeAxis({ total, scale: { ticks, line, width } }: AxisProps) {
  const hasRoom = (at: number) => at === 0 || width * (1 - at / total) > TICK_WIDTH / 2
  return (
    <div className="span-axis" role="presentation" aria-hidden="true">
      <span>Span</span>
      <span className="span-line" ref={line}>
        {ticks.map(({ at, text }) => (
          <span key={at} className="span-tick" style={{ left: partOf(at, total) }}>
            {hasRoom(at) && text}
          </span>
        ))}
      </span>
      <span className="number only-wide">Duration</span>
    </div>
  )
}

/** What the colours of the bars mean: the kinds that the trace has. */
export function Kinds({ rows }: Pick<WaterfallProps, 'rows'>) {
  const found = useMemo(() => new Set(rows.map(({ span }) => spanKindOf(span))), [rows])
  return (
    <ul className="kinds" aria-label="Kinds of spans">
      {SPAN_KINDS.filter(kind => found.has(kind)).map(kind => (
        <li key={kind}>
          <span className={`kind-mark kind-${kind}`} aria-hidden="true" />
          {kind}
        </li>
      ))}
    </ul>
  )
}

interface SpanRowProps {
  readonly row: Row
  readonly top: number
  readonly total: number
  readonly isSelected: boolean
  readonly onSelect: () => void
}

function SpanRow({ row: { span, depth, start, duration }, top, total, isSelected, onSelect }: SpanRowProps) {
  const isBad = span.status.code === 'error'
  const kind = spanKindOf(span)
  return (
    <div
      role="option"
      id={`span-${span.span_id}`}
      aria-selected={isSelected}
      className="span"
      style={{ transform: `translateY(${top}px)` }}
      onClick={onSelect}
    >
      <span className="span-name" style={{ paddingLeft: Math.min(depth, DEEPEST) * INDENT }}>
        <span className="clip">{span.name}</span>
        <span className="span-plugin clip">
          {isBad && <span className="bad">error · </span>}
          {kind} · {span.plugin.replace('@svc/plugin-', '')}
        </span>
      </span>
      <span className="span-line" aria-hidden="true">
        <span
          className={isBad ? 'span-bar span-bad' : `span-bar kind-${kind}`}
          style={{ left: partOf(start, total), width: `max(2px, ${partOf(duration, total)})` }}
        />
      </span>
      <span className="number small">{span.duration_ms === undefined ? '–' : durationOf(duration)}</span>
    </div>
  )
}
