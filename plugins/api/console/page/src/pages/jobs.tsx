import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { type FormEvent, useState } from 'react'
import { Chips, useAddress } from '../address.tsx'
import { allows, client, textIn } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, type CursorList, filtersOf, Refresh, TextFilter, useCursorList } from '../list.tsx'
import { Json } from '../message.tsx'
import { Action, Buttons, Card, Facts, Panel, useMe } from '../parts.tsx'
import { ReadProblem, Stale } from '../records.tsx'
import { jobs } from '../router.tsx'
import { Badge, durationOf, Empty, Failure, Loading, LogLink, Time, Title, type Tone } from '../states.tsx'
import { type Column, TablePage } from '../table.tsx'
import { JobFields, useJobInput, useJobKinds } from './schedules.tsx'

export type Job = ReplyOf<'get', '/api/v1/jobs'>['jobs'][number]

const STATES = [
  [undefined, 'All'],
  ['queued', 'Queued'],
  ['running', 'Running'],
  ['completed', 'Completed'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
] as const

const TONES: Readonly<Record<Job['state'], Tone>> = {
  queued: 'plain',
  running: 'accent',
  completed: 'ok',
  failed: 'bad',
  cancelled: 'plain',
}

const JobBadge = ({ job }: { readonly job: Job }) => (
  <Badge tone={TONES[job.state]}>{job.is_cancelling && job.state === 'running' ? 'cancelling' : job.state}</Badge>
)

const tookOf = ({ started_at: from, finished_at: to }: Job) =>
  from === null || to === null ? '–' : durationOf(Date.parse(to) - Date.parse(from))

function progressOf({ progress }: Job): string {
  if (!progress) return ''
  const { progress: done, total, message = '' } = progress
  return total ? `${Math.round((done / total) * 100)} % ${message}` : message
}

export const JOB_COLUMNS: readonly Column<Job>[] = [
  { name: 'Kind', width: 'minmax(8rem, 1.4fr)', cell: job => job.kind },
  { name: 'State', width: 'minmax(6.5rem, 0.8fr)', cell: job => <JobBadge job={job} /> },
  { name: 'Created', width: 'minmax(5rem, 0.8fr)', cell: job => <Time at={job.created_at} /> },
  { name: 'Attempts', width: '5rem', isNumber: true, isWide: true, cell: job => `${job.attempts} / ${job.max_attempts}` },
  { name: 'Duration', width: '5rem', isNumber: true, isWide: true, cell: tookOf },
  {
    name: 'About',
    width: 'minmax(0, 1.6fr)',
    isWide: true,
    cell: job => <span className="muted">{job.error?.message ?? (progressOf(job) || (job.schedule?.name ?? ''))}</span>,
  },
]

const isOfJobs = ({ type }: { readonly type: string }) => type.startsWith('svc.job_')

interface JobFilters {
  readonly kind?: string | undefined
  readonly state?: Job['state'] | undefined
  readonly group?: string | undefined
}

/** Jobs, the newest first, as they change. */
export function useJobs(filters: JobFilters): CursorList<Job> {
  useFreshening({ key: ['jobs'], isAbout: isOfJobs })
  return useCursorList({
    key: ['jobs', filters],
    read: (from, signal) =>
      client.get('/api/v1/jobs', { query: { limit: 50, ...filtersOf(filters, 'kind', 'state', 'group'), ...from }, signal }),
    itemsOf: page => page.jobs,
  })
}

export function Jobs() {
  const { id, kind, group, state } = jobs.useSearch()
  const me = useMe()
  const [isAdding, setAdding] = useState(false)
  const wanted = STATES.map(([value]) => value).find(value => value === state)
  const list = useJobs({ kind, group, state: wanted })
  return (
    <>
      <TablePage
        title="Jobs"
        actions={
          <>
            <Refresh list={list} />
            {allows(me, 'admin') && (
              <button type="button" className="button" onClick={() => setAdding(true)}>
                New job
              </button>
            )}
          </>
        }
        filters={
          <div className="row">
            <Chips label="States" name="state" values={STATES} />
            <TextFilter label="Kind" name="kind" />
            <TextFilter label="Group" name="group" />
          </div>
        }
        list={list}
        columns={JOB_COLUMNS}
        keyOf={job => job.id}
        select={job => ({ id: job.id })}
        empty={<Nothing isFiltered={[kind, group, wanted].some(Boolean)} />}
        detail={id !== undefined && <JobView key={id} id={id} />}
      />
      {isAdding && <AddJob onClose={() => setAdding(false)} />}
    </>
  )
}

const Nothing = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No job matches">
      <Link to="/jobs">Show all jobs</Link>
    </Empty>
  ) : (
    <Empty title="No jobs">
      Schedules and plugins add jobs. You can add one here, or with <code>svc jobs add</code>.
    </Empty>
  )

/** A job with its input, result and log. */
export function JobView({ id }: { readonly id: string }) {
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: ['jobs', 'one', id],
    queryFn: ({ signal }) => client.get('/api/v1/jobs/{id}', { path: { id }, signal }),
  })
  const { data, error, refetch } = query
  const act = (what: 'cancel' | 'retry') => async () => {
    await client.post(`/api/v1/jobs/{id}/${what}`, { path: { id } })
    await queries.invalidateQueries({ queryKey: ['jobs'] })
  }
  if (!data)
    return (
      <>
        <div className="bar">
          <Back isAlways />
          <Title name="Job">Job</Title>
        </div>
        {error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={8} />}
      </>
    )
  const isOpen = data.state === 'queued' || data.state === 'running'
  return (
    <>
      <div className="bar">
        <Back isAlways />
        <div className="grow">
          <div className="row">
            <Title name={`${data.kind}, job`}>{data.kind}</Title>
            <JobBadge job={data} />
          </div>
          <p className="muted small">
            <code>{id}</code> · created <Time at={data.created_at} />
          </p>
        </div>
        <JobActions isOpen={isOpen} canRetry={data.state === 'failed' || data.state === 'cancelled'} act={act} />
      </div>
      <Stale query={query} />
      <JobDetails job={data} isOpen={isOpen} />
    </>
  )
}

interface JobDetailsProps {
  readonly job: ReplyOf<'get', '/api/v1/jobs/{id}'>
  readonly isOpen: boolean
}

/** The request id of the attempt that failed. An attempt that runs is the one after it. */
const failedRequestOf = ({ id, state, attempts }: Job) => `${id}-${state === 'running' ? attempts - 1 : attempts}`

const JobDetails = ({ job, isOpen }: JobDetailsProps) => (
  <div className="reader-scroll pad stack" tabIndex={0} role="region" aria-label="The job">
    {job.error && (
      <p className="note note-bad">
        {job.error.message} <code>{job.error.code}</code> <LogLink request={failedRequestOf(job)} />
      </p>
    )}
    <Facts
      facts={[
        ['Attempts', `${job.attempts} of ${job.max_attempts}`],
        ['Due', isOpen && <Time at={job.due_at} />],
        ['Progress', progressOf(job) || null],
        ['Duration', job.finished_at !== null && tookOf(job)],
        ['Group', job.group],
        ['Schedule', job.schedule && <ScheduleLink name={job.schedule.name} />],
        ['Owner', job.owner],
      ]}
    />
    <section className="value">
      <h2 className="section-title">Input</h2>
      <Json value={job.input} label="Input" />
    </section>
    {job.result !== undefined && (
      <section className="value">
        <h2 className="section-title">Result</h2>
        <Json value={job.result} label="Result" />
      </section>
    )}
    <JobLog id={job.id} />
  </div>
)

interface JobActionsProps {
  readonly isOpen: boolean
  readonly canRetry: boolean
  readonly act: (what: 'cancel' | 'retry') => () => Promise<void>
}

function JobActions({ isOpen, canRetry, act }: JobActionsProps) {
  if (!allows(useMe(), 'admin')) return null
  return (
    <div className="row">
      {isOpen && <Action label="Cancel" act={act('cancel')} kind="bad" />}
      {canRetry && <Action label="Retry" act={act('retry')} kind="primary" />}
    </div>
  )
}

const ScheduleLink = ({ name }: { readonly name: string }) => (
  <Link to="/schedules" search={{ id: name }}>
    {name}
  </Link>
)

const LEVELS: Readonly<Record<string, Tone>> = { error: 'bad', warning: 'warn' }

function JobLog({ id }: { readonly id: string }) {
  const query = useQuery({
    queryKey: ['jobs', 'log', id],
    queryFn: ({ signal }) => client.get('/api/v1/jobs/{id}/log', { path: { id }, signal }),
  })
  const { data } = query
  return (
    <Card title="Log">
      <ReadProblem query={query} />
      {data?.entries.length === 0 && <p className="facts-none">The job has written nothing.</p>}
      <ol className="log">
        {data?.entries.map(({ at, attempt, level, message }, index) => (
          <li key={index}>
            <Time at={at} />
            <span className="muted">attempt {attempt}</span>
            {LEVELS[level] && <Badge tone={LEVELS[level]}>{level}</Badge>}
            <span className="log-text">{message}</span>
          </li>
        ))}
      </ol>
    </Card>
  )
}

function AddJob({ onClose }: { readonly onClose: () => void }) {
  const queries = useQueryClient()
  const [, go] = useAddress()
  const { kinds, error } = useJobKinds()
  const job = useJobInput(kinds)
  const add = useMutation({
    mutationFn: (data: FormData) => {
      const group = textIn(data, 'group')
      return client.post('/api/v1/jobs', {
        body: { kind: textIn(data, 'kind'), input: job.edited.value, ...(group === '' ? {} : { group }) },
      })
    },
    async onSuccess({ id }) {
      onClose()
      await queries.invalidateQueries({ queryKey: ['jobs'] })
      go({ id }, true)
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    add.mutate(new FormData(event.currentTarget))
  }
  return (
    <Panel title="New job" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <JobFields {...job} kinds={kinds} label="Kind" inputLabel="Input" />
        <label className="field">
          <span>Group (optional)</span>
          <input className="input" name="group" spellCheck={false} />
        </label>
        {error && <Failure error={error} />}
        {add.error && <Failure error={add.error} />}
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={add.isPending || job.edited.badText !== undefined}>
            Add
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}
