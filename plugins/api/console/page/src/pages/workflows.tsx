import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { type FormEvent, useState } from 'react'
import { usePageActions } from '../actions.ts'
import { Chips, Tabs, useAddress } from '../address.tsx'
import { allows, client, textIn } from '../api.ts'
import { FoldButton, useFocusedTitle, useFold } from '../fold.tsx'
import { useFreshening } from '../fresh.ts'
import { Back, ListPage, Search } from '../list.tsx'
import { Action, Buttons, Panel, useMe } from '../parts.tsx'
import { Adding, Nothing, Stale, useItems, withWords } from '../records.tsx'
import { workflows } from '../router.tsx'
import { Badge, Count, Empty, Failure, Loading, Time } from '../states.tsx'
import { type Column, Table } from '../table.tsx'
import { StartRun } from './workflow-start.tsx'
import { WorkflowText } from './workflow-text.tsx'

export type Workflow = ReplyOf<'get', '/api/v1/workflows'>['workflows'][number]

const STATES = [
  [undefined, 'All'],
  ['problems', 'With problems'],
  ['paused', 'Paused'],
] as const
const TABS = [
  [undefined, 'Text and drawing'],
  ['versions', 'Versions'],
] as const

const isOfWorkflows = ({ type }: { readonly type: string }) => /^svc\.(workflow_|plugin_|reloaded)/.test(type)

export const useWorkflows = () =>
  useItems(['workflows'], async signal => (await client.get('/api/v1/workflows', { signal })).workflows)

export function Workflows() {
  const { id, q, state, draft } = workflows.useSearch()
  useFreshening({ key: ['workflows'], isAbout: isOfWorkflows })
  const all = useWorkflows()
  const found = withWords(all, q, ({ name, description }) => `${name} ${description ?? ''}`)
  const items = found.items.filter(
    item => state === undefined || (state === 'paused' ? item.paused_at !== null : item.problems.length > 0)
  )
  const hasSelection = id !== undefined || draft !== undefined
  const [isListShown] = useFold()
  return (
    <ListPage
      title="Workflows"
      actions={<Adding label="New workflow" dialog={onClose => <NameDraft onClose={onClose} />} />}
      filters={
        <>
          <Search label="Search workflows" />
          <Chips label="States" name="state" values={STATES} />
        </>
      }
      list={{ ...all, items }}
      keyOf={item => item.name}
      entry={item => <Entry item={item} />}
      select={item => ({ id: item.name, tab: undefined, draft: undefined })}
      isSelected={item => item.name === id}
      empty={
        <Nothing isFiltered={all.items.length > 0} name="workflow" names="workflows">
          Write one here, or put a file into the folder <code>workflows</code> of the svc home, or of the folder where the server
          was started.
        </Nothing>
      }
      hasSelection={hasSelection}
      isWide
      isFolded={hasSelection && !isListShown}
      detail={
        draft !== undefined ? (
          <Draft key={draft} name={draft} />
        ) : id === undefined ? (
          <Empty title="Select a workflow">Its text and its drawing appear here, side by side.</Empty>
        ) : (
          <Detail key={id} name={id} listed={all.items.find(item => item.name === id)} />
        )
      }
    />
  )
}

function Entry({ item: { name, description, nodes, problems, paused_at: paused } }: { readonly item: Workflow }) {
  return (
    <>
      <span className="row spread">
        <span className="list-name clip grow">{name}</span>
        {problems.length > 0 && (
          <Badge tone="bad">
            {problems.length} {problems.length === 1 ? 'problem' : 'problems'}
          </Badge>
        )}
        {paused !== null && <Badge tone="warn">paused</Badge>}
      </span>
      <span className="list-facts">
        <span>
          {nodes} {nodes === 1 ? 'node' : 'nodes'}
        </span>
        <span className="clip">{description}</span>
      </span>
    </>
  )
}

interface DetailProps {
  readonly name: string
  readonly listed: Workflow | undefined
}

function Detail({ name, listed }: DetailProps) {
  const { tab } = workflows.useSearch()
  const title = useFocusedTitle()
  return (
    <>
      <div className="bar">
        <Back />
        <FoldButton label="List of workflows" />
        <div className="grow">
          <div className="row">
            <h2 className="section-title clip" tabIndex={-1} ref={title}>
              {name}
            </h2>
            {listed?.version && <span className="muted small">version {listed.version}</span>}
            {listed?.paused_at && <Badge tone="warn">paused</Badge>}
          </div>
          {listed?.description && <p className="muted small clip">{listed.description}</p>}
        </div>
        <Changes name={name} listed={listed} />
      </div>
      <Tabs label="Views of the workflow" values={TABS} />
      {tab === 'versions' ? <Versions name={name} /> : <WorkflowText name={name} />}
    </>
  )
}

function Changes({ name, listed }: DetailProps) {
  const me = useMe()
  const queries = useQueryClient()
  const [isStarting, setStarting] = useState(false)
  const change = (path: '/api/v1/workflows/pause' | '/api/v1/workflows/resume') => async () => {
    await client.post(path, { body: { workflow: name } })
    await queries.invalidateQueries({ queryKey: ['workflows'] })
  }
  usePageActions([{ name: `Start ${name}`, act: () => setStarting(true) }])
  const canRun = listed?.problems.length === 0
  return (
    <div className="row">
      <Link className="button" to="/runs" search={{ workflow: name }}>
        Runs
      </Link>
      {allows(me, 'admin') &&
        (listed?.paused_at ? (
          <Action label="Resume" act={change('/api/v1/workflows/resume')} />
        ) : (
          <Action label="Pause" act={change('/api/v1/workflows/pause')} />
        ))}
      <button type="button" className="button button-primary" disabled={!canRun} onClick={() => setStarting(true)}>
        Start a run
      </button>
      {isStarting && <StartRun name={name} onClose={() => setStarting(false)} />}
    </div>
  )
}

type Version = ReplyOf<'get', '/api/v1/workflows/versions'>['versions'][number]

const COLUMNS: readonly Column<Version>[] = [
  {
    name: 'Definition',
    width: 'minmax(8rem, 1.4fr)',
    cell: ({ definition, version }) => (
      <>
        <code>{definition.slice(0, 12)}</code> {version}
      </>
    ),
  },
  {
    name: 'State',
    width: 'minmax(6rem, 1fr)',
    cell: ({ is_current: isCurrent, missing_types: missing }) =>
      missing.length > 0 ? <Badge tone="bad">misses {missing.join(', ')}</Badge> : isCurrent && <Badge tone="ok">current</Badge>,
  },
  {
    name: 'Open runs',
    width: '6rem',
    isNumber: true,
    sortBy: version => version.open_runs,
    cell: version => <Count value={version.open_runs} />,
  },
  {
    name: 'Last used',
    width: 'minmax(0, 1fr)',
    isWide: true,
    cell: ({ last_used_at: at }) => (at === null ? <span className="muted">never</span> : <Time at={at} />),
  },
]

/** The definitions that runs of this workflow keep. */
function Versions({ name }: { readonly name: string }) {
  const query = useQuery({
    queryKey: ['workflows', name, 'versions'],
    queryFn: ({ signal }) => client.runs.versions(name, { signal }),
  })
  const { data, error, refetch } = query
  if (!data) return error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={4} />
  return (
    <>
      <Stale query={query} />
      {data.versions.length === 0 ? (
        <Empty title="No version is stored">The first run stores its definition.</Empty>
      ) : (
        <Table name="Versions" columns={COLUMNS} items={data.versions} keyOf={({ definition }) => definition} orderIn="sort" />
      )}
    </>
  )
}

const NAME = '[a-z][a-z0-9_\\-]{0,63}'

function NameDraft({ onClose }: { readonly onClose: () => void }) {
  const [, go] = useAddress()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const name = textIn(new FormData(event.currentTarget), 'name')
    onClose()
    go({ draft: name, id: undefined, tab: undefined }, true)
  }
  return (
    <Panel title="New workflow" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          <span>Name</span>
          <input className="input" name="name" required pattern={NAME} autoFocus spellCheck={false} />
          <span className="muted">
            Small letters, digits, - and _. The file is saved in <code>&lt;svc home&gt;/workflows</code>.
          </span>
        </label>
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary">
            Write it
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}

function Draft({ name }: { readonly name: string }) {
  const navigate = useNavigate()
  return (
    <>
      <div className="bar">
        <Back change={{ draft: undefined }} />
        <FoldButton label="List of workflows" />
        <div className="grow row">
          <h2 className="section-title clip">{name}</h2>
          <Badge tone="accent">new</Badge>
        </div>
      </div>
      <WorkflowText name={name} isNew onSaved={() => void navigate({ to: '/workflows', search: { id: name } })} />
    </>
  )
}
