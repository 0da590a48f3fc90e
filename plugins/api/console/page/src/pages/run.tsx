import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useEffect } from 'react'
import { Tabs } from '../address.tsx'
import { client } from '../api.ts'
import { usePageActions } from '../actions.ts'
import { Back } from '../list.tsx'
import { Action, Facts } from '../parts.tsx'
import { isPluginTab, usePluginTabs } from '../plugin-pages.ts'
import { Stale } from '../records.tsx'
import { RunQuestion } from '../run-question.tsx'
import { RunBadge } from '../run-state.tsx'
import { type RunSteps, useRunSteps } from '../run-steps.ts'
import { runs } from '../router.tsx'
import { Count, durationOf, Failure, Loading, LogLink, Time, Title } from '../states.tsx'
import { type Run, RunLink, Value } from './run-parts.tsx'
import { Replay } from './run-replay.tsx'
import { RunProgress } from './run-progress.tsx'
import { Signals } from './run-signals.tsx'

export { RunLink, Value } from './run-parts.tsx'

const PluginTab = lazy(() => import('../plugin-part.tsx').then(module => ({ default: module.PluginTab })))

const TABS = [
  [undefined, 'Progress'],
  ['data', 'Input and result'],
  ['signals', 'Signals and queries'],
] as const

/** A run: its state, its steps on the graph and as a list, and what can be done with it. */
export function RunDetail({ id }: { readonly id: string }) {
  const { tab } = runs.useSearch()
  const steps = useRunSteps(id)
  const pluginTabs = usePluginTabs('run')
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: ['run', id],
    queryFn: ({ signal }) => client.runs.get(id, { signal }),
  })
  const { data: run, error, refetch } = query
  useEffect(() => {
    if (steps.changes > 0) void queries.invalidateQueries({ queryKey: ['run', id] })
  }, [steps.changes, queries, id])
  if (!run)
    return (
      <>
        <div className="bar">
          <Back isAlways change={{ id: undefined, tab: undefined, step: undefined }} />
          <Title name="Run">Run</Title>
        </div>
        {error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={8} />}
      </>
    )
  return (
    <>
      <Head run={run} steps={steps} />
      <Stale query={query} />
      <Notices run={run} />
      <Tabs label="Views of the run" values={[...TABS, ...pluginTabs]} />
      {isPluginTab(tab) ? (
        <Suspense fallback={<Loading rows={8} />}>
          <PluginTab place="run" tab={tab} id={id} />
        </Suspense>
      ) : tab === 'data' ? (
        <Data run={run} />
      ) : tab === 'signals' ? (
        <Signals run={run} />
      ) : (
        <RunProgress run={run} steps={steps} />
      )}
    </>
  )
}

function Head({ run, steps }: { readonly run: Run; readonly steps: RunSteps }) {
  const { workflow, workflow_id: id, finished_at: finished, tokens } = run
  return (
    <div className="bar">
      <Back isAlways change={{ id: undefined, tab: undefined, step: undefined, state: undefined }} />
      <div className="grow">
        <div className="row">
          <Title name={`${workflow}, run`}>{workflow}</Title>
          <RunBadge run={run} />
        </div>
        <p className="muted small">
          <code>{id}</code> · started <Time at={run.created_at} />
          {finished && <> · took {durationOf(run.execution_time_ms)}</>} · <Count value={steps.steps.length} />{' '}
          {steps.steps.length === 1 ? 'step' : 'steps'}
          {tokens > 0 && (
            <>
              {' · '}
              <Count value={tokens} /> tokens
            </>
          )}
        </p>
      </div>
      <Actions run={run} />
    </div>
  )
}

function useRunActions({ workflow_id: id, status, paused_at: paused }: Run) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const changed = async () => {
    await queries.invalidateQueries({ queryKey: ['run', id] })
    await queries.invalidateQueries({ queryKey: ['runs'] })
  }
  const opened = async ({ workflow_id: next }: { readonly workflow_id: string }) => {
    await changed()
    await navigate({ to: '/runs', search: { id: next } })
  }
  const isRunning = status === 'running'
  return {
    ...(isRunning && paused === null ? { pause: async () => (await client.runs.pause(id), changed()) } : {}),
    ...(isRunning && paused !== null ? { resume: async () => (await client.runs.resume(id), changed()) } : {}),
    ...(isRunning ? { cancel: async () => (await client.runs.cancel(id), changed()) } : {}),
    ...(status === 'failed' ? { retry: async () => opened(await client.runs.retry(id, { waitSeconds: 0 })) } : {}),
    opened,
  }
}

function Actions({ run }: { readonly run: Run }) {
  const { pause, resume, cancel, retry, opened } = useRunActions(run)
  usePageActions([
    ...(pause ? [{ name: 'Pause this run', act: pause }] : []),
    ...(resume ? [{ name: 'Resume this run', act: resume }] : []),
    ...(retry ? [{ name: 'Retry this run', act: retry }] : []),
  ])
  const stopped = 'Its running nodes are aborted, and what its completed nodes did is undone where the workflow says how.'
  return (
    <div className="row">
      {pause && <Action label="Pause" act={pause} />}
      {resume && <Action label="Resume" act={resume} kind="primary" />}
      {cancel && <Action label="Cancel" act={cancel} kind="bad" confirm={{ title: 'Cancel the run?', text: stopped }} />}
      {retry && <Action label="Retry" act={retry} kind="primary" />}
      {run.status !== 'running' && <Replay run={run} onStarted={opened} />}
    </div>
  )
}

const LINKS = [
  ['retry_of', 'retries'],
  ['replay_of', 'repeats'],
  ['continued_by', 'continued by'],
  ['previous_run', 'continues'],
  ['next_run', 'continued as new by'],
] as const

/** What a reader must know first: why it failed, what it asks, and which runs belong to it. */
function Notices({ run }: { readonly run: Run }) {
  const links = LINKS.flatMap(([name, word]) => (run[name] === null ? [] : [[word, run[name]] as const]))
  const asking = (run.waiting_for ?? []).filter(({ question }) => question !== null)
  if (!run.error && links.length === 0 && asking.length === 0) return null
  return (
    <div className="notices">
      {run.error && (
        <p className="note note-bad">
          {run.error} {run.failure_code && <code>{run.failure_code}</code>} <LogLink request={run.workflow_id} />
        </p>
      )}
      {links.length > 0 && (
        <p className="small muted">
          {links.map(([word, other]) => (
            <span key={word} className="notice-link">
              {word}{' '}
              <Link to="/runs" search={{ id: other }}>
                <code>{other.slice(0, 13)}</code>
              </Link>
            </span>
          ))}
        </p>
      )}
      {asking.map(({ step, question, until }) => (
        <RunQuestion key={step} run={run.workflow_id} step={step} question={question!} until={until} />
      ))}
    </div>
  )
}

function Data({ run }: { readonly run: Run }) {
  const { input, parameters, result, result_file: file } = run
  return (
    <div className="reader-scroll pad stack" tabIndex={0} role="region" aria-label="Input and result">
      <Facts
        facts={[
          ['Definition', <code key="definition">{run.definition.slice(0, 12)}</code>],
          ['Tool calls', run.tool_calls],
          ['Tokens', <Count key="tokens" value={run.tokens} />],
          ['Node with its files', run.affinity],
          ['First run', run.first_run !== null && <RunLink id={run.first_run} />],
        ]}
      />
      <Value name="Input" value={input} />
      {parameters !== null && Object.keys(Object(parameters)).length > 0 && <Value name="Parameters" value={parameters} />}
      {run.status === 'completed' && <Value name="Result" value={result} file={file} />}
    </div>
  )
}
