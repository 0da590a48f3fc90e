import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useMemo } from 'react'
import { Text } from './message.tsx'
import { PageLink } from './page-link.tsx'
import { Card } from './parts.tsx'
import { ReadProblem } from './records.tsx'
import { Empty, Loading, Time } from './states.tsx'
import { textOf } from './plugin-text.ts'
import { dataOf, type Declared, type Format, itemsOf, type Part, type PartProps, valueAt, type ViewSource } from './view-data.ts'
import { visible } from './visible-text.ts'

const Chart = lazy(() => import('./chart.tsx'))

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })

/** A value of a plugin: text, whatever it is. */
export function Value({ value, format = 'text' }: { readonly value: unknown; readonly format?: Format | undefined }) {
  if (format === 'number' && typeof value === 'number') return <>{numbers.format(value)}</>
  if (format === 'time' && typeof value === 'string' && Number.isFinite(Date.parse(value))) return <Time at={value} />
  const text = textOf(value)
  if (format === 'link' && typeof value === 'string') return <PageLink to={value}>{text}</PageLink>
  // its direction ends with it
  return <bdi>{text}</bdi>
}

export const keyOf = (source: ViewSource, at: number, { request }: Declared) => [
  'plugin-view',
  source.name,
  source.ids,
  at,
  request ?? source.given?.key ?? null,
]

const useAnswer = (part: Declared | undefined, at: number, source: ViewSource) =>
  useQuery({
    queryKey: part ? keyOf(source, at, part) : ['plugin-view', source.name, 'none'],
    queryFn: ({ signal }) => dataOf(part!, source, signal).then(answer => answer ?? null),
    enabled: part !== undefined,
    retry: false,
  })

/** A card, if the part has a title. */
const Titled = ({ title, children }: { readonly title: string | undefined; readonly children: ReactNode }) =>
  title === undefined ? children : <Card title={title}>{children}</Card>

function Answered({
  query,
  children,
}: {
  readonly query: ReturnType<typeof useAnswer>
  readonly children: (answer: unknown) => ReactNode
}) {
  const { data, error } = query
  return (
    <>
      <ReadProblem query={query} />
      {data === undefined ? !error && <Loading rows={2} /> : children(data)}
    </>
  )
}

export function ViewStats({ part, at, source }: PartProps<Part<'stats'>>) {
  const query = useAnswer(part, at, source)
  return (
    <Titled title={part.title}>
      <Answered query={query}>
        {answer => (
          <dl className="tiles view-stats">
            {part.stats.map((stat, index) => (
              <Stat key={index} {...stat} found={valueAt(answer, stat.value)} />
            ))}
          </dl>
        )}
      </Answered>
    </Titled>
  )
}

const LONGEST_LARGE = 24

function Stat({ title, format, found }: Part<'stats'>['stats'][number] & { readonly found: unknown }) {
  const isText = typeof found === 'string' && found.length > LONGEST_LARGE
  return (
    <div className="tile">
      <dt className="tile-name">{title}</dt>
      <dd className={isText ? 'tile-text' : 'tile-value'}>
        <Value value={found} format={format} />
      </dd>
    </div>
  )
}

const LONGEST_TEXT = 10_000

export function ViewMarkdown({ part, at, source }: PartProps<Part<'markdown'>>) {
  const { value = '' } = part
  const answer = useAnswer(part.text === undefined ? part : undefined, at, source)
  const shown = (found: unknown) => (
    <div className={part.title === undefined ? 'view-text' : 'view-text view-text-in'}>
      {typeof found === 'string' ? <Text text={visible(found, LONGEST_TEXT)} isOfPlugin /> : <p>{textOf(found)}</p>}
    </div>
  )
  return (
    <Titled title={part.title}>
      {part.text === undefined ? <Answered query={answer}>{found => shown(valueAt(found, value))}</Answered> : shown(part.text)}
    </Titled>
  )
}

export function ViewChart({ part, at, source }: PartProps<Part<'chart'>>) {
  const query = useAnswer(part, at, source)
  return (
    <Card title={part.title}>
      <Answered query={query}>{answer => <Lines part={part} answer={answer} />}</Answered>
    </Card>
  )
}

const secondsOf = (value: unknown) => (typeof value === 'string' ? Date.parse(value) / 1_000 : Number.NaN)
const numberOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null)

function Lines({ part: { title, items, time, lines }, answer }: { readonly part: Part<'chart'>; readonly answer: unknown }) {
  const data = useMemo(() => {
    const points = itemsOf(answer, items)
      .items.map(item => ({ item, at: secondsOf(valueAt(item, time)) }))
      .filter(({ at }) => Number.isFinite(at))
      .sort((a, b) => a.at - b.at)
    return {
      times: points.map(({ at }) => at),
      lines: lines.map(line => ({ name: line.title, values: points.map(({ item }) => numberOf(valueAt(item, line.value))) })),
    }
  }, [answer, items, time, lines])
  if (data.times.length === 0) return <Empty title="No values yet" />
  // a canvas says nothing to a screen reader
  const last = data.lines.map(({ name, values }) => `${name} ${textOf(values.at(-1))}`).join(', ')
  return (
    <Suspense fallback={<Loading rows={4} />}>
      <Chart {...data} label={`${title}: last ${last}`} valueText={value => numbers.format(value)} />
    </Suspense>
  )
}
