import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Tabs, useAddress } from '../address.tsx'
import { client } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, filtersOf, ListHead, Refresh, TextFilter, useCursorList } from '../list.tsx'
import { Action, Buttons, Panel } from '../parts.tsx'
import { ReadProblem } from '../records.tsx'
import { deadLetters } from '../router.tsx'
import { Badge, durationOf, Empty, Failure, Loading, LogLink, Time, Title } from '../states.tsx'
import { type Column, ListTable } from '../table.tsx'
import { JOB_COLUMNS, JobView, useJobs } from './jobs.tsx'
import { RunLink, Value } from './run.tsx'
import type { Listed } from './runs.tsx'

const TABS = [
  [undefined, 'Runs'],
  ['jobs', 'Jobs'],
] as const

const COLUMNS: readonly Column<Listed>[] = [
  { name: 'Workflow', width: 'minmax(8rem, 1.2fr)', cell: run => run.workflow },
  { name: 'Failure', width: 'minmax(7rem, 1fr)', cell: run => <Badge tone="bad">{run.failure_code ?? 'failed'}</Badge> },
  { name: 'Message', width: 'minmax(0, 2fr)', isWide: true, cell: run => <span className="muted">{run.error}</span> },
  { name: 'Failed', width: 'minmax(5rem, 0.7fr)', cell: run => <Time at={run.finished_at ?? run.updated_at} /> },
  { name: 'Duration', width: '5rem', isNumber: true, isWide: true, cell: run => durationOf(run.execution_time_ms) },
]

/** What failed for good: runs and jobs that no retry goes on with. */
export function DeadLetters() {
  const { id, tab } = deadLetters.useSearch()
  if (id !== undefined)
    return (
      <div className="reader whole column">{tab === 'jobs' ? <JobView key={id} id={id} /> : <DeadRun key={id} id={id} />}</div>
    )
  return tab === 'jobs' ? <DeadJobs /> : <DeadRuns />
}

const Frame = ({
  actions,
  filters,
  children,
}: {
  readonly actions: ReactNode
  readonly filters?: ReactNode
  readonly children: ReactNode
}) => (
  <div className="reader whole">
    <ListHead title="Dead letters" actions={actions} filters={filters} />
    <Tabs label="Kinds of dead letters" values={TABS} />
    {children}
  </div>
)

function DeadJobs() {
  const { kind } = deadLetters.useSearch()
  const list = useJobs({ kind, state: 'failed' })
  return (
    <Frame actions={<Refresh list={list} />} filters={<TextFilter label="Kind" name="kind" />}>
      <ListTable
        name="Failed jobs"
        list={list}
        columns={JOB_COLUMNS}
        keyOf={job => job.id}
        select={job => ({ id: job.id })}
        empty={<Empty title="No job has failed for good" />}
      />
    </Frame>
  )
}

const isOfRuns = ({ type }: { readonly type: string }) => /^svc\.(run_|workflow_run)/.test(type)

function DeadRuns() {
  const { workflow, failure_code } = deadLetters.useSearch()
  useFreshening({ key: ['dead-runs'], isAbout: isOfRuns })
  const filters = { workflow, failure_code }
  const list = useCursorList({
    key: ['dead-runs', filters],
    read: (from, signal) =>
      client.runs.deadLetters.list({ limit: 50, ...filtersOf(filters, 'workflow', 'failure_code'), ...from }, { signal }),
    itemsOf: page => page.runs,
  })
  return (
    <Frame
      actions={
        <>
          <Refresh list={list} />
          <Bulk action="retry" filters={filters} isOffered={list.items.length > 0} />
          <Bulk action="drop" filters={filters} isOffered={list.items.length > 0} />
        </>
      }
      filters={
        <div className="row">
          <TextFilter label="Workflow" name="workflow" />
          <TextFilter label="Failure code" name="failure_code" />
        </div>
      }
    >
      <ListTable
        name="Failed runs"
        list={list}
        columns={COLUMNS}
        keyOf={run => run.workflow_id}
        select={run => ({ id: run.workflow_id })}
        empty={
          <Empty title="No run has failed for good">A failed run stays here until it is retried, replayed or dropped.</Empty>
        }
      />
    </Frame>
  )
}

interface BulkProps {
  readonly action: 'retry' | 'drop'
  readonly filters: { readonly workflow?: string | undefined; readonly failure_code?: string | undefined }
  /** Whether there is a run to change. What was done stays open when none is left. */
  readonly isOffered: boolean
}

const WORDS = { retry: ['Retry all', 'Retry'], drop: ['Drop all', 'Drop'] } as const

type BulkReply = Awaited<ReturnType<typeof client.runs.bulk>>

/** Counts the dead letters that the filters select, while the panel is open, and changes them. */
function useBulk({ action, filters }: Pick<BulkProps, 'action' | 'filters'>, isOpen: boolean) {
  const queries = useQueryClient()
  const given = { action, ...filtersOf(filters, 'workflow', 'failure_code') }
  const counted = useQuery({
    queryKey: ['dead-runs', 'count', given],
    queryFn: ({ signal }) => client.runs.bulk({ ...given, dry_run: true }, { signal }),
    enabled: isOpen,
    staleTime: 0,
  })
  const change = useMutation({
    mutationFn: () => client.runs.bulk(given),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: ['dead-runs'] })
      await queries.invalidateQueries({ queryKey: ['runs'] })
    },
  })
  return { counted, change }
}

const BulkCount = ({ action, count }: { readonly action: BulkProps['action']; readonly count: number }) => (
  <p>
    {count} {count === 1 ? 'run matches' : 'runs match'} the filters of the page.
    {action === 'drop' && ' Their records, logs and steps are deleted.'}
  </p>
)

const BulkResult = ({ reply }: { readonly reply: BulkReply }) => (
  <p role="status">
    {reply.job_id === null
      ? `${reply.changed ?? 0} changed, ${reply.failed?.length ?? 0} failed.`
      : `A job changes ${reply.count} runs.`}
  </p>
)

/** Changes all dead letters that the filters select. It counts them first. */
function Bulk({ action, filters, isOffered }: BulkProps) {
  const [isOpen, setOpen] = useState(false)
  const { counted, change } = useBulk({ action, filters }, isOpen)
  const close = () => {
    setOpen(false)
    change.reset()
  }
  const [all, one] = WORDS[action]
  const kind = action === 'drop' ? 'button button-bad' : 'button'
  return (
    <>
      {/* it is there before the list is: what is below must not jump */}
      <button type="button" className={kind} disabled={!isOffered} onClick={() => setOpen(true)}>
        {all}
      </button>
      {isOpen && (
        <Panel title={`${all}?`} onClose={close}>
          {counted.isPending && <Loading rows={1} />}
          {counted.data && !change.data && <BulkCount action={action} count={counted.data.count} />}
          {change.data && <BulkResult reply={change.data} />}
          {[counted.error, change.error].map((error, at) => error && <Failure key={at} error={error} />)}
          <Buttons onClose={close}>
            {!change.data && (
              <button type="button" className={kind} disabled={!counted.data || change.isPending} onClick={() => change.mutate()}>
                {one} {counted.data?.count ?? ''}
              </button>
            )}
          </Buttons>
        </Panel>
      )}
    </>
  )
}

type DeadLetter = Awaited<ReturnType<typeof client.runs.deadLetters.get>>

/** Why the run failed, and the steps that did. */
const Failed = ({ letter }: { readonly letter: DeadLetter }) => (
  <div className="reader-scroll pad stack" tabIndex={0} role="region" aria-label="The dead letter">
    <p className="note note-bad">
      {letter.run.error} {letter.run.failure_code && <code>{letter.run.failure_code}</code>}{' '}
      <LogLink request={letter.run.workflow_id} />
    </p>
    {letter.failed_steps.map(step => (
      <section key={step.step} className="value">
        <h2 className="section-title">{step.step}</h2>
        <p className="muted small">
          {step.type}, {step.attempts} {step.attempts === 1 ? 'attempt' : 'attempts'}
          {step.error && step.error.message !== letter.run.error && `: ${step.error.message}`}
        </p>
        <Value name={`Input of ${step.step}`} value={step.input} />
      </section>
    ))}
  </div>
)

function DeadRun({ id }: { readonly id: string }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const [, go] = useAddress()
  const query = useQuery({
    queryKey: ['dead-runs', 'one', id],
    queryFn: ({ signal }) => client.runs.deadLetters.get(id, { signal }),
  })
  const { data, error } = query
  const retry = async () => {
    const { workflow_id: next } = await client.runs.deadLetters.retry(id, { waitSeconds: 0 })
    await queries.invalidateQueries({ queryKey: ['dead-runs'] })
    await navigate({ to: '/runs', search: { id: next } })
  }
  const drop = async () => {
    await client.runs.deadLetters.drop(id)
    go({ id: undefined })
    await queries.invalidateQueries({ queryKey: ['dead-runs'] })
  }
  const run = data?.run
  return (
    <>
      <div className="bar">
        <Back isAlways />
        <div className="grow">
          <Title name="Dead letter">{run?.workflow ?? 'Dead letter'}</Title>
          <p className="muted small">
            <RunLink id={id} /> {run && <Time at={run.finished_at ?? run.updated_at} />}
          </p>
        </div>
        {run && (
          <div className="row">
            <Action label="Retry" act={retry} kind="primary" />
            <Action
              label="Drop"
              act={drop}
              kind="bad"
              confirm={{ title: 'Drop the run?', text: 'Its record, its log and its steps are deleted.' }}
            />
          </div>
        )}
      </div>
      <ReadProblem query={query} />
      {!data && !error && <Loading rows={6} />}
      {data && <Failed letter={data} />}
    </>
  )
}
