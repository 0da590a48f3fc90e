import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { BodyOf, ReplyOf, Schemas } from '@svc/client'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Chips, useAddress } from '../address.tsx'
import { allows, client, textIn } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, ListPage, Search } from '../list.tsx'
import { Action, Buttons, Card, Facts, Panel, useMe } from '../parts.tsx'
import { Adding, Nothing, Stale, useItems, withWords } from '../records.tsx'
import { schedules } from '../router.tsx'
import { SchemaInput, useEditedValue } from '../schema-input.tsx'
import { Badge, durationOf, Empty, Failure, Loading, Time } from '../states.tsx'
import { type Column, Table } from '../table.tsx'

type Schedule = ReplyOf<'get', '/api/v1/schedules'>['schedules'][number]
type Tick = Schemas['ScheduleTick']
type NewSchedule = BodyOf<'post', '/api/v1/schedules'>

const STATES = [
  [undefined, 'All'],
  ['active', 'Active'],
  ['paused', 'Paused'],
] as const

const isOfSchedules = ({ type }: { readonly type: string }) => /^svc\.(schedule_|job_)/.test(type)

/** When it ticks, as people say it. */
const rhythmOf = ({ cron, every_ms: every }: Schedule) =>
  cron ?? (every === null ? '' : `every ${durationOf(every).replace('.0 ', ' ')}`)

export function Schedules() {
  const { id, q, state } = schedules.useSearch()
  useFreshening({ key: ['schedules'], isAbout: isOfSchedules })
  const all = useItems(['schedules'], async signal => (await client.get('/api/v1/schedules', { signal })).schedules)
  const found = withWords(all, q, ({ name, job }) => `${name} ${job.kind}`)
  const items = found.items.filter(({ is_paused: isPaused }) => state === undefined || (state === 'paused') === isPaused)
  return (
    <ListPage
      title="Schedules"
      actions={<Adding label="New schedule" dialog={onClose => <AddSchedule onClose={onClose} />} />}
      filters={
        <>
          <Search label="Search schedules" />
          <Chips label="States" name="state" values={STATES} />
        </>
      }
      list={{ ...all, items }}
      keyOf={item => item.name}
      entry={item => <Entry item={item} />}
      select={item => ({ id: item.name })}
      isSelected={item => item.name === id}
      empty={
        <Nothing isFiltered={all.items.length > 0} name="schedule" names="schedules">
          Add one here, with <code>svc schedules add</code>, or as <code>schedule:</code> of a workflow.
        </Nothing>
      }
      hasSelection={id !== undefined}
      detail={
        id === undefined ? (
          <Empty title="Select a schedule">Its last ticks and its next one appear here.</Empty>
        ) : (
          <Detail key={id} name={id} />
        )
      }
    />
  )
}

function Entry({ item }: { readonly item: Schedule }) {
  return (
    <>
      <span className="row spread">
        <span className="list-name clip grow">{item.name}</span>
        {item.is_paused && <Badge tone="warn">paused</Badge>}
        {item.last?.error && <Badge tone="bad">{item.last.error.code}</Badge>}
      </span>
      <span className="list-facts">
        <span className="clip">{rhythmOf(item)}</span>
        {item.next !== null && (
          <span>
            next <Time at={item.next} />
          </span>
        )}
      </span>
    </>
  )
}

const COLUMNS: readonly Column<Tick>[] = [
  { name: 'Tick', width: 'minmax(7rem, 1fr)', cell: ({ tick }) => <Time at={tick} /> },
  { name: 'Outcome', width: 'minmax(8rem, 2fr)', cell: tick => <Outcome tick={tick} /> },
  { name: 'Handled', width: 'minmax(0, 1fr)', isWide: true, cell: ({ at }) => <Time at={at} /> },
]

function Outcome({ tick: { job, skipped, error } }: { readonly tick: Tick }): ReactNode {
  if (error) return <Badge tone="bad">{error.code}</Badge>
  if (skipped !== null) return <Badge tone="warn">skipped: the job before it still ran</Badge>
  if (job === null) return <span className="muted">no job</span>
  return (
    <Link to="/jobs" search={{ id: job }}>
      job <code>{job.slice(0, 13)}</code>
    </Link>
  )
}

function useScheduleChange(name: string) {
  const queries = useQueryClient()
  return (what: 'pause' | 'resume' | 'run') => async () => {
    await client.post(`/api/v1/schedules/{name}/${what}`, { path: { name } })
    await queries.invalidateQueries({ queryKey: ['schedules'] })
  }
}

function Detail({ name }: { readonly name: string }) {
  const me = useMe()
  const query = useQuery({
    queryKey: ['schedules', name],
    queryFn: ({ signal }) => client.get('/api/v1/schedules/{name}', { path: { name }, query: { ticks: 50 }, signal }),
  })
  const { data, error, refetch } = query
  if (!data) return error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={8} />
  return (
    <>
      <div className="bar">
        <Back />
        <div className="grow">
          <div className="row">
            <h2 className="section-title clip">{name}</h2>
            {data.is_paused ? <Badge tone="warn">paused</Badge> : <Badge tone="ok">active</Badge>}
          </div>
          {data.description !== null && <p className="muted small">{data.description}</p>}
        </div>
        {allows(me, 'admin') && <Changes schedule={data} />}
      </div>
      <Stale query={query} />
      <div className="reader-scroll pad stack" tabIndex={0} role="region" aria-label={`Schedule ${name}`}>
        <Facts
          facts={[
            ['Ticks', <code key="rhythm">{rhythmOf(data)}</code>],
            ['Time zone', data.time_zone],
            ['Next', data.next !== null && <Time at={data.next} />],
            ['Job', data.job.kind],
            ['Missed ticks', data.catch_up],
            ['Overlap', data.overlap],
            ['Random delay', data.jitter_ms > 0 && durationOf(data.jitter_ms)],
            ['Defined in', data.origin],
            ['Runs as', data.owner],
          ]}
        />
        <Card title="Last ticks">
          {data.ticks.length === 0 ? (
            <p className="facts-none">It has not ticked yet.</p>
          ) : (
            <Table name="Last ticks" columns={COLUMNS} items={data.ticks} keyOf={({ tick }) => tick} />
          )}
        </Card>
      </div>
    </>
  )
}

function Changes({ schedule: { name, is_paused: isPaused, origin } }: { readonly schedule: Schedule }) {
  const change = useScheduleChange(name)
  const queries = useQueryClient()
  const [, go] = useAddress()
  const remove = async () => {
    await client.delete('/api/v1/schedules/{name}', { path: { name } })
    go({ id: undefined })
    queries.removeQueries({ queryKey: ['schedules', name] })
    await queries.invalidateQueries({ queryKey: ['schedules'], exact: true })
  }
  return (
    <div className="row">
      <Action label="Run now" act={change('run')} />
      {isPaused ? (
        <Action label="Resume" act={change('resume')} kind="primary" />
      ) : (
        <Action label="Pause" act={change('pause')} />
      )}
      {origin === 'added' && (
        <Action
          label="Remove"
          kind="bad"
          act={remove}
          confirm={{ title: 'Remove the schedule?', text: `${name} starts no further jobs. Its jobs stay.` }}
        />
      )}
    </div>
  )
}

const OVERLAPS = ['skip', 'queue', 'cancel', 'allow'] as const
const CATCH_UPS = ['none', 'one', 'all'] as const

function scheduleIn(data: FormData, input: unknown): Omit<NewSchedule, 'name'> {
  const every = textIn(data, 'every')
  const cron = textIn(data, 'cron')
  const zone = textIn(data, 'zone')
  return {
    ...(every === '' ? { cron } : { every_ms: Math.round(Number(every) * 60_000) }),
    ...(zone === '' ? {} : { time_zone: zone }),
    overlap: OVERLAPS.find(name => name === textIn(data, 'overlap')) ?? 'skip',
    catch_up: CATCH_UPS.find(name => name === textIn(data, 'catch_up')) ?? 'none',
    job: { kind: textIn(data, 'kind'), input },
  }
}

/** The kinds of jobs that the caller can start. */
export const useJobKinds = () => {
  const read = useQuery({ queryKey: ['job-kinds'], queryFn: ({ signal }) => client.get('/api/v1/jobs/kinds', { signal }) })
  return { ...read, kinds: (read.data?.kinds ?? []).filter(kind => kind.can_start && !kind.is_internal) }
}

type Kinds = ReturnType<typeof useJobKinds>['kinds']

/** The kind that is chosen, and its input, which begins anew with another kind. */
export function useJobInput(kinds: Kinds) {
  const edited = useEditedValue(null)
  const [chosen, setChosen] = useState<string>()
  const choose = (name: string) => {
    setChosen(name)
    edited.fromForm(null)
  }
  return { edited, choose, kind: kinds.find(({ name }) => name === chosen) ?? kinds[0] }
}

interface JobFieldsProps extends ReturnType<typeof useJobInput> {
  readonly kinds: Kinds
  readonly label: string
  readonly inputLabel: string
}

/** A kind of jobs, and its input: a form where the kind has a schema. */
export const JobFields = ({ kinds, kind, edited, choose, label, inputLabel }: JobFieldsProps) => (
  <>
    <label className="field">
      <span>{label}</span>
      <select className="select" name="kind" required value={kind?.name} onChange={event => choose(event.target.value)}>
        {kinds.map(({ name, description }) => (
          <option key={name} value={name}>
            {description === '' ? name : `${name} – ${description}`}
          </option>
        ))}
      </select>
    </label>
    {kind && <SchemaInput key={kind.name} schema={kind.input} label={inputLabel} edited={edited} />}
  </>
)

/** Adds the schedule of a form, or only tells when it would tick. */
function useNewSchedule(onClose: () => void, input: unknown) {
  const queries = useQueryClient()
  const [, go] = useAddress()
  const add = useMutation({
    mutationFn: (schedule: NewSchedule) => client.post('/api/v1/schedules', { body: schedule }),
    async onSuccess({ name }) {
      onClose()
      await queries.invalidateQueries({ queryKey: ['schedules'] })
      go({ id: name }, true)
    },
  })
  const preview = useMutation({
    mutationFn: (schedule: Omit<NewSchedule, 'name'>) => client.post('/api/v1/schedules/preview', { body: schedule }),
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    const given = scheduleIn(data, input)
    const isPreview = (event.nativeEvent as SubmitEvent).submitter?.getAttribute('value') === 'preview'
    if (isPreview) preview.mutate(given)
    else add.mutate({ name: textIn(data, 'name'), ...given })
  }
  return { add, preview, submit }
}

function AddSchedule({ onClose }: { readonly onClose: () => void }) {
  const { kinds, error } = useJobKinds()
  const job = useJobInput(kinds)
  const { add, preview, submit } = useNewSchedule(onClose, job.edited.value)
  return (
    <Panel title="New schedule" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          <span>Name</span>
          <input className="input" name="name" required autoFocus spellCheck={false} />
        </label>
        <RhythmFields />
        <JobFields {...job} kinds={kinds} label="Job" inputLabel="Input of the job" />
        <div className="pair">
          <Choice name="overlap" label="While the job before it runs" values={OVERLAPS} />
          <Choice name="catch_up" label="Missed ticks" values={CATCH_UPS} />
        </div>
        {[error, add.error, preview.error].map((failed, at) => failed && <Failure key={at} error={failed} />)}
        {preview.data && <NextTicks ticks={preview.data.ticks} />}
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={add.isPending || job.edited.badText !== undefined}>
            Add
          </button>
          <button
            type="submit"
            className="button"
            value="preview"
            disabled={preview.isPending || job.edited.badText !== undefined}
          >
            Show next ticks
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}

/** When it ticks: a cron expression or an interval, and the time zone. */
const RhythmFields = () => (
  <>
    <div className="pair">
      <label className="field">
        <span>Cron</span>
        <input className="input" name="cron" placeholder="0 6 * * *" spellCheck={false} />
      </label>
      <label className="field">
        <span>or every … minutes</span>
        <input className="input" name="every" type="number" min="0.1" step="any" />
      </label>
    </div>
    <label className="field">
      <span>Time zone (optional)</span>
      <input className="input" name="zone" placeholder="Europe/Berlin" spellCheck={false} />
    </label>
  </>
)

const NextTicks = ({ ticks }: { readonly ticks: readonly string[] }) => (
  <ul className="plain small" aria-label="Next ticks">
    {ticks.map(tick => (
      <li key={tick}>{new Date(tick).toLocaleString()}</li>
    ))}
  </ul>
)

const Choice = ({
  name,
  label,
  values,
}: {
  readonly name: string
  readonly label: string
  readonly values: readonly string[]
}) => (
  <label className="field">
    <span>{label}</span>
    <select className="select" name={name}>
      {values.map(value => (
        <option key={value} value={value}>
          {value}
        </option>
      ))}
    </select>
  </label>
)
