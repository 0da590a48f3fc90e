import { Link } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { Chips, useAddress } from '../address.tsx'
import { client } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { filtersOf, Refresh, TextFilter, useCursorList } from '../list.tsx'
import { runs } from '../router.tsx'
import { RunBadge } from '../run-state.tsx'
import { type Column, TablePage } from '../table.tsx'
import { durationOf, Empty, Time } from '../states.tsx'
import { RunDetail } from './run.tsx'

export type Listed = ReplyOf<'get', '/api/v1/workflows/runs'>['runs'][number]

const PAGE = 50
const STATES = [
  [undefined, 'All'],
  ['running', 'Running'],
  ['completed', 'Completed'],
  ['failed', 'Failed'],
] as const

const COLUMNS: readonly Column<Listed>[] = [
  { name: 'Workflow', width: 'minmax(8rem, 1fr)', cell: run => run.workflow },
  { name: 'State', width: 'minmax(6.5rem, 0.5fr)', cell: run => <RunBadge run={run} /> },
  { name: 'Run', width: 'minmax(0, 17.5rem)', isWide: true, cell: run => <code className="code">{run.workflow_id}</code> },
  { name: 'Started', width: 'minmax(5.5rem, 0.5fr)', cell: run => <Time at={run.created_at} /> },
  {
    name: 'Duration',
    width: '6rem',
    isNumber: true,
    isWide: true,
    cell: run => (run.finished_at ? durationOf(run.execution_time_ms) : '–'),
  },
  { name: 'Follows', width: 'minmax(0, 0.5fr)', isWide: true, cell: run => <Origin run={run} /> },
]

function Origin({ run }: { readonly run: Listed }) {
  const words = [
    [run.retry_of, 'retry'],
    [run.replay_of, 'replay'],
    [run.previous_run, 'continued as new'],
    [run.continued_by, 'was repeated'],
  ].flatMap(([id, word]) => (id === null ? [] : [word]))
  return <span className="muted">{words.join(', ')}</span>
}

const isOfRuns = ({ type }: { readonly type: string }) => /^svc\.(run_|workflow_run)/.test(type)

export function Runs() {
  const search = runs.useSearch()
  const { id, status, workflow, failure_code, owner, paused } = search
  useFreshening({ key: ['runs'], isAbout: isOfRuns })
  const filters = {
    workflow,
    failure_code,
    owner,
    status: STATES.map(([value]) => value).find(value => value === status),
    paused: paused === 'true' || paused === 'false' ? paused : undefined,
  } as const
  const list = useCursorList({
    key: ['runs', filters],
    read: (from, signal) =>
      client.runs.list(
        { limit: PAGE, ...filtersOf(filters, 'workflow', 'failure_code', 'owner', 'status', 'paused'), ...from },
        { signal }
      ),
    itemsOf: page => page.runs,
  })
  return (
    <TablePage
      title="Runs"
      actions={<Refresh list={list} />}
      filters={
        <div className="row">
          <Chips label="States" name="status" values={STATES} />
          <TextFilter label="Workflow" name="workflow" />
          <TextFilter label="Failure code" name="failure_code" />
          <OnlyPaused />
        </div>
      }
      list={list}
      columns={COLUMNS}
      keyOf={run => run.workflow_id}
      select={run => ({ id: run.workflow_id })}
      empty={<Nothing isFiltered={Object.values(filters).some(Boolean)} />}
      isWide
      detail={id !== undefined && <RunDetail key={id} id={id} />}
    />
  )
}

const Nothing = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No run matches">
      <Link to="/runs">Show all runs</Link>
    </Empty>
  ) : (
    <Empty title="No runs yet">
      Start a workflow on the page <Link to="/workflows">Workflows</Link>, or with <code>svc workflows run</code>.
    </Empty>
  )

function OnlyPaused() {
  const [search, change] = useAddress()
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={search.paused === 'true'}
        onChange={event => change({ paused: event.target.checked ? 'true' : undefined })}
      />
      <span>Paused</span>
    </label>
  )
}
