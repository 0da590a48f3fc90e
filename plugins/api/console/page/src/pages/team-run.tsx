import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { type CSSProperties, type ReactNode, useEffect } from 'react'
import { client } from '../api.ts'
import { whileVisible } from '../feed.ts'
import { Back } from '../list.tsx'
import { Json, Text, Tool } from '../message.tsx'
import { Stale } from '../records.tsx'
import { teams } from '../router.tsx'
import { SearchLink } from '../address.tsx'
import { Badge, costOf, Count, durationOf, Empty, Failure, Loading, LogLink, Time, Title, type Tone } from '../states.tsx'

type Tree = ReplyOf<'get', '/api/v1/teams/runs/{id}'>
type Member = Tree['members'][number]
type Message = NonNullable<Tree['tree']>[number]['messages'][number]

const TONES: Readonly<Record<string, Tone>> = {
  running: 'accent',
  completed: 'ok',
  partial: 'warn',
  failed: 'bad',
  stopped: 'warn',
  cancelled: 'plain',
  idle: 'plain',
}

export const TeamStatus = ({ status }: { readonly status: string }) => <Badge tone={TONES[status] ?? 'plain'}>{status}</Badge>

/** Reads the run again with each event of its workflow run, at most so often. */
const FRESHEN_MS = 500

function useTeamRun(id: string) {
  const queries = useQueryClient()
  const read = useQuery({
    queryKey: ['team-runs', 'one', id],
    queryFn: ({ signal }) => client.get('/api/v1/teams/runs/{id}', { path: { id }, signal }),
  })
  const run = read.data?.run_id
  const isRunning = read.data?.status === 'running'
  useEffect(() => {
    if (run === undefined || !isRunning) return
    const ending = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const freshen = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        void queries.invalidateQueries({ queryKey: ['team-runs', 'one', id] })
      }, FRESHEN_MS)
    }
    whileVisible(async signal => {
      for await (const event of client.runs.events(run, { signal })) if (event.type !== 'node_progress') freshen()
    }, ending.signal)
      .catch(() => {})
      .finally(freshen)
    return () => {
      ending.abort()
      clearTimeout(timer)
    }
  }, [run, isRunning, queries, id])
  return read
}

/** A run of a team: its members with what they spent, and the rounds with what they said. */
export function TeamRunView({ id }: { readonly id: string }) {
  const { member } = teams.useSearch()
  const query = useTeamRun(id)
  const { data, error, refetch } = query
  if (!data)
    return (
      <>
        <div className="bar">
          <Back isAlways change={{ id: undefined, member: undefined }} />
          <Title name="Run of a team">Run of a team</Title>
        </div>
        {error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={8} />}
      </>
    )
  return (
    <>
      <Head run={data} />
      <Stale query={query} />
      <div className="reader-scroll pad stack" tabIndex={0} role="region" aria-label="The run of the team">
        <p className="note">{data.task}</p>
        {data.error?.message && (
          <p className="note note-bad">
            {data.error.message} <code>{data.error.code}</code> <LogLink request={data.run_id} />
          </p>
        )}
        {data.stop && <p className="note note-warn">{data.stop.reason ?? `Its budget of ${data.stop.budget} stopped it.`}</p>}
        <Members run={data} selected={member} />
        <Rounds run={data} member={member} />
      </div>
    </>
  )
}

function Head({ run }: { readonly run: Tree }) {
  const { team, formation, spent, started_at: from, finished_at: to } = run
  return (
    <div className="bar">
      <Back isAlways change={{ id: undefined, member: undefined }} />
      <div className="grow">
        <div className="row">
          <Title name={`${team}, run of a team`}>{team}</Title>
          <TeamStatus status={run.status} />
        </div>
        <p className="muted small">
          {formation} · started <Time at={from} />
          {to !== null && ` · took ${durationOf(Date.parse(to) - Date.parse(from))}`} · <Count value={spent.tokens} /> tokens ·
          cost {costOf(spent.cost)}
        </p>
      </div>
      <Link className="button" to="/runs" search={{ id: run.run_id }}>
        Open the run
      </Link>
    </div>
  )
}

function Members({ run: { members, spent }, selected }: { readonly run: Tree; readonly selected: string | undefined }) {
  return (
    <ul className="members" aria-label="Members">
      {members.map(member => (
        <li key={member.name}>
          <SearchLink
            change={{ member: member.name === selected ? undefined : member.name }}
            className="member"
            isCurrent={member.name === selected}
            replace
          >
            <MemberCard member={member} share={spent.tokens === 0 ? 0 : member.spent.tokens / spent.tokens} />
          </SearchLink>
        </li>
      ))}
    </ul>
  )
}

function MemberCard({ member, share }: { readonly member: Member; readonly share: number }) {
  const { name, role, lead, status, messages, spent, stopped_by: stopped, error } = member
  return (
    <>
      <span className="row spread">
        <span className="list-name clip grow">{name}</span>
        <TeamStatus status={status} />
      </span>
      <span className="muted small clip">
        {role}
        {lead && ', lead'}
      </span>
      <span className="meter" style={{ '--share': share } as CSSProperties} aria-hidden="true" />
      <span className="list-facts">
        <span>
          {messages} {messages === 1 ? 'message' : 'messages'}
        </span>
        <span>
          <Count value={spent.tokens} /> tokens
        </span>
        <span>cost {costOf(spent.cost)}</span>
      </span>
      {stopped !== null && <span className="small">stopped by its budget of {stopped}</span>}
      {error?.message && <span className="bad small">{error.message}</span>}
    </>
  )
}

interface RoundsProps {
  readonly run: Tree
  readonly member: string | undefined
}

function Rounds({ run: { tree, status, run_id: run }, member }: RoundsProps): ReactNode {
  if (tree === null) return <Empty title="The messages are gone">The workflow run of this team was deleted.</Empty>
  const rounds = tree
    .map(({ round, messages }) => ({ round, messages: messages.filter(one => member === undefined || one.member === member) }))
    .filter(({ messages }) => messages.length > 0)
  if (rounds.length === 0)
    return (
      <Empty title={member === undefined ? 'No member has begun' : `${member} has said nothing`}>
        {status === 'running' && 'Messages appear here as they are written.'}
      </Empty>
    )
  return rounds.map(({ round, messages }) => (
    <section key={round} aria-label={`Round ${round}`} className="stack round">
      <h2 className="section-title">Round {round}</h2>
      {messages.map(message => (
        <MessageView key={message.step} message={message} run={run} />
      ))}
    </section>
  ))
}

function MessageView({ message, run }: { readonly message: Message; readonly run: string }) {
  const { member, status, model, prompt, reply, tools, spent, error, started_at: from, finished_at: to, shortened } = message
  return (
    <article className="card saying">
      <div className="message-head">
        <span className="message-who">{member}</span>
        <span className="muted small">
          {model !== null && `${model} · `}
          <Time at={from} />
          {to !== null && ` · ${durationOf(Date.parse(to) - Date.parse(from))}`} · <Count value={spent.tokens} /> tokens
        </span>
        {status !== 'completed' && (
          <span className="message-more">
            <TeamStatus status={status} />
          </span>
        )}
      </div>
      <details className="tool">
        <summary>
          <span className="muted grow">Prompt</span>
        </summary>
        <div className="tool-body">
          <Text text={prompt} />
        </div>
      </details>
      {tools.map((tool, at) => (
        <Tool
          key={at}
          name={tool.tool}
          state={tool.success ? 'done' : 'failed'}
          input={{}}
          {...(tool.error === null ? {} : { output: tool.error })}
        />
      ))}
      {reply !== null && <Text text={reply} />}
      {message.data !== null && reply === null && <Json value={message.data} label={`Data of ${member}`} />}
      {shortened && <p className="muted small">The text was cut. The step of the run has the whole.</p>}
      {error?.message && (
        <p className="note note-bad">
          {error.message} <code>{error.code}</code> <LogLink request={run} />
        </p>
      )}
      {status === 'running' && <p className="muted">Thinking …</p>}
    </article>
  )
}
