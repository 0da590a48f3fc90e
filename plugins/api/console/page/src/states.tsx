import { Link, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { factsOf, messageOf } from './api.ts'
import { iconAt } from './pages.ts'
import { visible } from './visible-text.ts'

/** The title of a page. It gets the focus when the page opens, so that a screen reader says where the reader is. */
export function Title({ children, name }: { readonly children: ReactNode; readonly name: string }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${visible(name)} · svc console`
    heading.current?.focus({ preventScroll: true })
  }, [name])
  return (
    <h1 className="title" tabIndex={-1} ref={heading}>
      {typeof children === 'string' ? visible(children) : children}
    </h1>
  )
}

/** A skeleton, after a moment: what arrives at once does not flicker. Its place is taken from the beginning, so that nothing moves. */
export function Loading({ rows = 4 }: { readonly rows?: number }) {
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className="skeleton" data-shown={isShown || undefined} role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} className="skeleton-row" />
      ))}
    </div>
  )
}

/** Nothing is there yet, and how to change that. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  const icon = useLocation({ select: ({ pathname }) => iconAt(pathname) })
  return (
    <div className="empty">
      {icon && (
        <svg viewBox="0 0 24 24" aria-hidden="true" className="icon empty-icon">
          <path d={icon} />
        </svg>
      )}
      <p className="empty-title">{title}</p>
      {children && <div className="muted">{children}</div>}
    </div>
  )
}

/** The longest message of an error that is shown. */
export const LONGEST_MESSAGE = 2_000

/** What failed, its code, what to do, and a way to try again. */
export function Failure({ error, onRetry }: { readonly error: unknown; readonly onRetry?: (() => void) | undefined }) {
  const { code, hint, requestId } = factsOf(error)
  return (
    <div className="failure" role="alert">
      <p className="failure-title">{visible(messageOf(error), LONGEST_MESSAGE)}</p>
      {hint && <p>{hint}</p>}
      <p className="failure-facts">
        {code && <code>{code}</code>}
        {requestId && (
          <span>
            request{' '}
            <Link to="/logs" search={{ request: requestId }}>
              <code>{requestId}</code>
            </Link>
          </span>
        )}
      </p>
      {onRetry && (
        <button type="button" className="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** The log of a request, or of the run or attempt of a job that has this id in place of one. */
export const LogLink = ({ request }: { readonly request: string }) => (
  <Link to="/logs" search={{ request }}>
    log
  </Link>
)

/** The log of the request that failed, after a message that is a line of its own. */
export function ErrorLog({ error }: { readonly error: unknown }) {
  const { requestId } = factsOf(error)
  return requestId === undefined ? null : <LogLink request={requestId} />
}

export function PageError({ error, reset }: { readonly error: unknown; readonly reset: () => void }) {
  // after an update of the server, an old page asks for files that are gone
  const isOld = error instanceof Error && /dynamically imported module|Importing a module/.test(error.message)
  return (
    <div className="page">
      <Failure
        error={isOld ? new Error('The server has a newer console. Load the page again.') : error}
        onRetry={isOld ? () => location.reload() : reset}
      />
    </div>
  )
}

export function NotFound() {
  return (
    <div className="page">
      <Title name="Not found">There is no such page</Title>
      <p className="muted">
        The address is not one of the console. <Link to="/overview">Go to the overview</Link>
      </p>
    </div>
  )
}

const STEPS: readonly (readonly [ms: number, unit: Intl.RelativeTimeFormatUnit])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
]
/** Without the full stops of abbreviations, which would end sentences. */
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

function ago(ms: number): string {
  const [size, unit] = STEPS.find(([step]) => Math.abs(ms) >= step) ?? [1_000, 'second']
  return Math.abs(ms) < 5_000 ? 'now' : relative.format(Math.round(ms / size), unit).replace('.', '')
}

const TICK_MS = 15_000

/** A time as people say it, with the exact time on hover. */
export function Time({ at }: { readonly at: string }) {
  const [, setTick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTick(tick => tick + 1), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  const time = Date.parse(at)
  return (
    <time dateTime={at} title={absolute.format(time)}>
      {ago(time - Date.now())}
    </time>
  )
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat('en')

/** 12,345 as 12.3K, with the exact number on hover. */
export function Count({ value }: { readonly value: number }) {
  return <span title={whole.format(value)}>{value < 10_000 ? whole.format(value) : compact.format(value)}</span>
}

/** A duration of minutes: 90 min, 6 h, 3 h 20 min, 2 d 4 h. */
function longDuration(minutes: number): string {
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  const [whole, rest] = hours < 48 ? [`${hours} h`, `${minutes % 60} min`] : [`${Math.floor(hours / 24)} d`, `${hours % 24} h`]
  return rest.startsWith('0 ') ? whole : `${whole} ${rest}`
}

/** A duration with a fitting unit. */
export function durationOf(ms: number): string {
  if (ms < 1) return `${(ms * 1_000).toFixed(0)} µs`
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : longDuration(Math.round(ms / 60_000))
}

const money = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 4 })

/** A cost; a dash where no model had a price. */
export const costOf = (cost: number | null): string => (cost === null ? '–' : money.format(cost))

export type Tone = 'ok' | 'warn' | 'bad' | 'plain' | 'accent'

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }) {
  return <span className={`badge badge-${tone}`}>{children}</span>
}
