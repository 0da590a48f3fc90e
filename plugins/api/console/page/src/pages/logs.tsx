import { Link } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { type Change, Chips, SearchLink, Tabs, useAddress } from '../address.tsx'
import { feed, positionBefore, readEvent, type ServerEvent } from '../feed.ts'
import { ListHead, Search } from '../list.tsx'
import { LogLines, type LogQuery } from '../log-lines.tsx'
import { Json } from '../message.tsx'
import { logs } from '../router.tsx'
import { Badge, Empty, Failure, Loading } from '../states.tsx'
import { type Column, Table } from '../table.tsx'
import { useValue } from '../value.ts'

const LEVELS = [
  [undefined, 'All'],
  ['info', 'Info'],
  ['warn', 'Warnings'],
  ['error', 'Errors'],
] as const

export function Logs() {
  const { tab, request } = logs.useSearch()
  const isEvents = tab === 'events'
  return (
    <div className="reader whole">
      <ListHead
        title="Logs and events"
        actions={request !== undefined && <OneRequest request={request} />}
        filters={
          <div className="filters">
            <Search label={isEvents ? 'Search events' : 'Search the log'} />
            {!isEvents && <Chips label="Levels" name="level" values={LEVELS} />}
          </div>
        }
      />
      <Tabs
        label="Logs or events"
        values={[
          [undefined, 'Log'],
          ['events', 'Events'],
        ]}
      />
      {isEvents ? <Events /> : <Log />}
    </div>
  )
}

const OneRequest = ({ request }: { readonly request: string }) => (
  <>
    <span className="muted small clip">
      request <code>{request}</code>
    </span>
    <Link className="button" to="/traces" search={{ request }}>
      Its trace
    </Link>
    <SearchLink change={{ request: undefined }} className="button" replace>
      All requests
    </SearchLink>
  </>
)

function Log() {
  const { q, level, request } = logs.useSearch()
  const query = useMemo((): LogQuery => {
    const known = LEVELS.map(([value]) => value).find(value => value === level)
    return {
      ...(known === undefined ? {} : { level: known }),
      ...(q === undefined ? {} : { text: q.slice(0, 200) }),
      ...(request === undefined ? {} : { request_id: request.slice(0, 200) }),
    }
  }, [q, level, request])
  return <LogLines query={query} isWhole />
}

const nameOf = ({ type }: ServerEvent) => type.replace(/^svc\./, '')
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' })

const columnsOf = (opened: string | undefined, open: (event: ServerEvent) => void): readonly Column<ServerEvent>[] => [
  {
    name: 'Time',
    width: '5.5rem',
    cell: ({ time }) => (
      <time dateTime={time} title={new Date(time).toLocaleString()}>
        {clock.format(Date.parse(time))}
      </time>
    ),
  },
  {
    name: 'Event',
    width: 'minmax(0, 1.2fr)',
    cell: event => (
      <button type="button" className="link-button" onClick={() => open(event)} aria-expanded={event.id === opened}>
        {nameOf(event)}
      </button>
    ),
  },
  { name: 'About', width: 'minmax(0, 1.5fr)', cell: ({ subject }) => subject },
  { name: 'Category', width: '6rem', isWide: true, cell: ({ category }) => <Badge>{category.toLowerCase()}</Badge> },
  { name: 'Principal', width: '9rem', isWide: true, cell: ({ principal }) => principal },
  {
    name: 'Request',
    width: '8rem',
    isWide: true,
    cell: ({ requestid }) =>
      requestid === '' ? '–' : <SearchLink change={{ request: requestid }}>{requestid.slice(0, 8)}</SearchLink>,
  },
]

const SelectedEvent = ({ event, onClose }: { readonly event: ServerEvent; readonly onClose: () => void }) => (
  <section className="span-detail" aria-label="The selected event">
    <div className="row spread">
      <h3 className="section-title">{nameOf(event)}</h3>
      <button type="button" className="button" onClick={onClose}>
        Close
      </button>
    </div>
    <Json value={event} label="The event" />
  </section>
)

const CLOSED: Change = { event: undefined, after: undefined }

/** The event of the address, which can be older than the page. */
function OpenedEvent({ id, after }: { readonly id: string; readonly after: string | undefined }) {
  const [, change] = useAddress()
  const known = useValue(feed).events.find(event => event.id === id)
  const read = useQuery({
    queryKey: ['event', id, after],
    queryFn: ({ signal }) => (after === undefined ? null : readEvent(id, after, signal)),
    enabled: known === undefined,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const event = known ?? read.data
  const close = () => change(CLOSED)
  if (event) return <SelectedEvent event={event} onClose={close} />
  if (read.error) return <Failure error={read.error} onRetry={() => void read.refetch()} />
  if (read.isPending) return <Loading rows={3} />
  return (
    <p className="note note-flat" role="status">
      The server no longer keeps the event of this address. <SearchLink change={CLOSED}>Close</SearchLink>
    </p>
  )
}

function Events() {
  const { q, request, event: opened, after } = logs.useSearch()
  const [, change] = useAddress()
  const { events, state, error } = useValue(feed)
  const open = (event: ServerEvent) => change({ event: event.id, after: positionBefore(event) })
  const words = q?.toLowerCase()
  const shown = events.filter(
    event =>
      (request === undefined || event.requestid === request) &&
      (words === undefined || `${event.type} ${event.subject} ${event.principal}`.toLowerCase().includes(words))
  )
  return (
    <>
      {state === 'failed' && <Failure error={new Error(error ?? 'The stream of events has stopped.')} />}
      {shown.length === 0 && (
        <Empty title={events.length === 0 ? 'Nothing has happened since you opened the console' : 'No such event'}>
          Events appear here as they happen.
        </Empty>
      )}
      {shown.length > 0 && (
        <Table name="Events, newest first" items={shown} keyOf={event => event.id} columns={columnsOf(opened, open)} />
      )}
      {opened !== undefined && <OpenedEvent key={opened} id={opened} after={after} />}
    </>
  )
}
