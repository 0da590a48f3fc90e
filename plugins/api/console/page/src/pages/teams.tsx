import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { type FormEvent, useState } from 'react'
import { Chips, SearchLink, Tabs, useAddress } from '../address.tsx'
import { allows, client, textIn } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, filtersOf, ListHead, Refresh, TextFilter, useCursorList } from '../list.tsx'
import { Buttons, Facts, Panel, useMe } from '../parts.tsx'
import { teams } from '../router.tsx'
import { Badge, costOf, Count, Empty, Failure, Loading, Time, Title } from '../states.tsx'
import { type Column, ListTable, Table } from '../table.tsx'
import { TeamRunView, TeamStatus } from './team-run.tsx'

type TeamRun = ReplyOf<'get', '/api/v1/teams/runs'>['runs'][number]
type Team = ReplyOf<'get', '/api/v1/teams'>['teams'][number]

const TABS = [
  [undefined, 'Runs'],
  ['teams', 'Teams'],
] as const
const STATES = [
  [undefined, 'All'],
  ['running', 'Running'],
  ['completed', 'Completed'],
  ['partial', 'Partial'],
  ['failed', 'Failed'],
] as const

const RUN_COLUMNS: readonly Column<TeamRun>[] = [
  { name: 'Team', width: 'minmax(7rem, 1fr)', cell: run => run.team },
  { name: 'State', width: '6.5rem', cell: run => <TeamStatus status={run.status} /> },
  { name: 'Task', width: 'minmax(0, 2.4fr)', isWide: true, cell: run => <span className="muted">{run.task}</span> },
  { name: 'Started', width: 'minmax(5rem, 0.7fr)', cell: run => <Time at={run.started_at} /> },
  { name: 'Rounds', width: '4rem', isNumber: true, isWide: true, cell: run => run.rounds },
  { name: 'Tokens', width: '5rem', isNumber: true, isWide: true, cell: run => <Count value={run.spent.tokens} /> },
  { name: 'Cost', width: '5rem', isNumber: true, isWide: true, cell: run => costOf(run.spent.cost) },
]

const TEAM_COLUMNS: readonly Column<Team>[] = [
  { name: 'Team', width: 'minmax(7rem, 1fr)', sortBy: team => team.name, cell: team => team.name },
  { name: 'Formation', width: '7rem', sortBy: team => team.formation, cell: team => team.formation ?? '–' },
  { name: 'Members', width: 'minmax(0, 1.4fr)', isWide: true, cell: team => team.members.join(', ') },
  { name: 'About', width: 'minmax(0, 2fr)', isWide: true, cell: team => <span className="muted">{team.description}</span> },
  {
    name: 'Problems',
    width: '5rem',
    cell: team =>
      team.problems.length > 0 ? <Badge tone="bad">{team.problems.length}</Badge> : <span className="muted">none</span>,
  },
]

export function Teams() {
  const { id, tab } = teams.useSearch()
  if (id !== undefined)
    return (
      <div className="reader whole column">
        {tab === 'teams' ? <TeamView key={id} name={id} /> : <TeamRunView key={id} id={id} />}
      </div>
    )
  return tab === 'teams' ? <TeamList /> : <RunList />
}

const isOfTeams = ({ type }: { readonly type: string }) => /^svc\.(run_|team_)/.test(type)

function RunList() {
  const { team, status } = teams.useSearch()
  useFreshening({ key: ['team-runs'], isAbout: isOfTeams })
  const filters = { team, status: STATES.map(([value]) => value).find(value => value === status) }
  const list = useCursorList({
    key: ['team-runs', filters],
    read: (from, signal) =>
      client.get('/api/v1/teams/runs', { query: { limit: 50, ...filtersOf(filters, 'team', 'status'), ...from }, signal }),
    itemsOf: page => page.runs,
  })
  return (
    <div className="reader whole">
      <ListHead
        title="Teams"
        actions={
          <>
            <Refresh list={list} />
            <RunTeam />
          </>
        }
        filters={
          <div className="row">
            <Chips label="States" name="status" values={STATES} />
            <TextFilter label="Team" name="team" />
          </div>
        }
      />
      <Tabs label="Runs and teams" values={TABS} />
      <ListTable
        name="Runs of teams"
        list={list}
        columns={RUN_COLUMNS}
        keyOf={run => run.id}
        select={run => ({ id: run.id })}
        empty={
          team === undefined && status === undefined ? (
            <Empty title="No team has run yet">
              Run one here, or with <code>svc teams run</code>.
            </Empty>
          ) : (
            <Empty title="No run matches">
              <Link to="/teams">Show all runs</Link>
            </Empty>
          )
        }
      />
    </div>
  )
}

const useTeams = () =>
  useCursorList({
    key: ['teams'],
    read: async (_, signal): Promise<ReplyOf<'get', '/api/v1/teams'> & { readonly next_cursor?: null }> =>
      client.get('/api/v1/teams', { signal }),
    itemsOf: page => page.teams,
  })

function TeamList() {
  const list = useTeams()
  return (
    <div className="reader whole">
      <ListHead
        title="Teams"
        actions={
          <>
            <Refresh list={list} />
            <RunTeam />
          </>
        }
      />
      <Tabs label="Runs and teams" values={TABS} />
      <ListTable
        name="Teams of this server"
        list={list}
        columns={TEAM_COLUMNS}
        keyOf={team => team.name}
        orderIn="sort"
        select={team => ({ id: team.name })}
        empty={
          <Empty title="No teams">
            A team is a file in the folder <code>teams</code> of the svc home, or part of a plugin.
          </Empty>
        }
      />
    </div>
  )
}

type Member = ReplyOf<'get', '/api/v1/teams/{name}'>['members'][number]

const MEMBER_COLUMNS: readonly Column<Member>[] = [
  { name: 'Member', width: 'minmax(6rem, 1fr)', sortBy: member => member.name, cell: member => member.name },
  {
    name: 'Role',
    width: 'minmax(0, 1.4fr)',
    sortBy: member => member.role,
    cell: member => (member.lead ? `${member.role} (lead)` : member.role),
  },
  { name: 'Goal', width: 'minmax(0, 2.4fr)', isWide: true, cell: member => <span className="muted">{member.goal}</span> },
  { name: 'Profile', width: '7rem', isWide: true, cell: member => member.profile ?? '–' },
  { name: 'Tools', width: 'minmax(0, 1fr)', isWide: true, cell: member => member.tools?.join(', ') ?? 'of its mode' },
]

function TeamView({ name }: { readonly name: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['teams', name],
    queryFn: ({ signal }) => client.get('/api/v1/teams/{name}', { path: { name }, signal }),
  })
  return (
    <>
      <div className="bar">
        <Back isAlways />
        <div className="grow">
          <Title name={`${name}, team`}>{name}</Title>
          {data?.description && <p className="muted small">{data.description}</p>}
        </div>
        <SearchLink className="button" change={{ id: undefined, tab: undefined, team: name }}>
          Runs
        </SearchLink>
        <RunTeam team={name} />
      </div>
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading rows={6} />}
      {data && (
        <>
          <Facts
            facts={[
              ['Formation', data.formation],
              ['Source', data.source],
              ['Rounds', data.rounds],
              ['Budget', data.budget && <code key="budget">{JSON.stringify(data.budget)}</code>],
            ]}
          />
          {data.problems.map(problem => (
            <p key={`${problem.path} ${problem.message}`} className="note note-bad">
              {problem.line !== null && `Line ${problem.line}: `}
              {problem.message}
            </p>
          ))}
          <Table name="Members" columns={MEMBER_COLUMNS} items={data.members} keyOf={member => member.name} orderIn="sort" />
        </>
      )}
    </>
  )
}

/** Starts a team. Its run opens at once, and shows what its members say as they say it. */
function RunTeam({ team }: { readonly team?: string }) {
  const me = useMe()
  const [isOpen, setOpen] = useState(false)
  if (!allows(me, 'workflows')) return null
  return (
    <>
      <button type="button" className="button button-primary" onClick={() => setOpen(true)}>
        Run a team
      </button>
      {isOpen && <RunTeamPanel team={team} onClose={() => setOpen(false)} />}
    </>
  )
}

interface TeamOrder {
  readonly team: string
  readonly task: string
  readonly budget?: { readonly tokens?: number; readonly cost?: number; readonly rounds?: number; readonly time?: string }
}

/** Starts the run and leaves its stream: the run goes on. Returns the id of the run of the team. */
async function startTeam({ team, task, budget }: TeamOrder): Promise<string> {
  const leaving = new AbortController()
  const stream = client.stream('post', '/api/v1/teams/{name}/run', {
    path: { name: team },
    body: { task, ...(budget ? { budget } : {}) },
    signal: leaving.signal,
  })
  try {
    for await (const event of stream) {
      if (event.type === 'start') return event.id
      if (event.type === 'error') throw Object.assign(new Error(event.error), { code: event.error_code })
    }
  } finally {
    leaving.abort()
  }
  throw new Error('The team did not start.')
}

function budgetIn(data: FormData): TeamOrder['budget'] {
  const numbers = (['tokens', 'cost', 'rounds'] as const).flatMap(name => {
    const text = textIn(data, name)
    return text === '' ? [] : [[name, Number(text)] as const]
  })
  return numbers.length === 0 ? undefined : Object.fromEntries(numbers)
}

/** Starts the team of a form, and opens its run. */
function useTeamStart(onClose: () => void) {
  const [, go] = useAddress()
  const start = useMutation({
    mutationFn(data: FormData) {
      const budget = budgetIn(data)
      return startTeam({ team: textIn(data, 'team'), task: textIn(data, 'task'), ...(budget ? { budget } : {}) })
    },
    onSuccess(id) {
      onClose()
      go({ id, tab: undefined, team: undefined, status: undefined }, true)
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    start.mutate(new FormData(event.currentTarget))
  }
  return { start, submit }
}

const BudgetFields = () => (
  <fieldset className="group">
    <legend>Budget (optional)</legend>
    <div className="pair">
      <label className="field">
        <span>Tokens</span>
        <input className="input" name="tokens" type="number" min="1" />
      </label>
      <label className="field">
        <span>Cost</span>
        <input className="input" name="cost" type="number" min="0" step="any" />
      </label>
      <label className="field">
        <span>Rounds</span>
        <input className="input" name="rounds" type="number" min="1" />
      </label>
    </div>
  </fieldset>
)

function RunTeamPanel({ team, onClose }: { readonly team: string | undefined; readonly onClose: () => void }) {
  const all = useTeams()
  const { start, submit } = useTeamStart(onClose)
  return (
    <Panel title="Run a team" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          <span>Team</span>
          <select className="select" name="team" key={all.items.length} defaultValue={team} required>
            {all.items
              .filter(({ problems }) => problems.length === 0)
              .map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
          </select>
        </label>
        <label className="field">
          <span>Task</span>
          <textarea className="textarea" name="task" rows={4} required autoFocus />
        </label>
        <BudgetFields />
        {Boolean(all.error) && <Failure error={all.error} />}
        {start.error && <Failure error={start.error} />}
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={start.isPending}>
            {start.isPending ? 'Starting …' : 'Start'}
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}
