import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { BodyOf, ReplyOf, Schemas } from '@svc/client'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { client, textIn } from './api.ts'
import { differing, type Part } from './differing.ts'
import { Json } from './message.tsx'
import { Buttons, Panel } from './parts.tsx'
import { Problem, Stale, Step, Steps, useAgain, useChange } from './records.tsx'
import { Badge, durationOf, Empty, Failure, Loading } from './states.tsx'

// What a person does with one MCP server: adds it, tests it, reads its tools, approves what has changed.

type Read = ReplyOf<'get', '/api/v1/mcp/servers/{name}/tools'>
type Tool = Read['tools'][number]

interface ToolsProps {
  readonly server: string
  readonly isChanges: boolean
  readonly mayApprove: boolean
}

export function ServerTools({ server, isChanges, mayApprove }: ToolsProps) {
  const query = useQuery({
    queryKey: ['mcp', 'tools', server],
    queryFn: ({ signal }) => client.get('/api/v1/mcp/servers/{name}/tools', { path: { name: server }, signal }),
  })
  const { data, error, refetch } = query
  if (error && !data) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading rows={5} />
  const shown = isChanges ? data.tools.filter(({ status }) => status === 'changed') : data.tools
  return (
    <div className="pane">
      <Stale query={query} />
      {data.failure && <Failure error={Object.assign(new Error(data.failure.message), { code: data.failure.class })} />}
      {data.left_out.length > 0 && (
        <ul className="note plain-list" aria-label="Left out">
          {data.left_out.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {shown.length === 0 && (
        <Empty title={isChanges ? 'Nothing has changed since it was approved' : 'The server has no tools'} />
      )}
      {isChanges ? (
        <Changes server={server} tools={shown} mayApprove={mayApprove} />
      ) : (
        shown.map(tool => <ToolCard key={tool.name} tool={tool} />)
      )}
    </div>
  )
}

const ToolCard = ({ tool }: { readonly tool: Tool }) => (
  <details className="tool">
    <summary>
      <code className="grow clip">{tool.name}</code>
      {tool.stripped.length > 0 && <Badge tone="warn">hidden characters</Badge>}
      {tool.status !== 'good' && <Badge tone={tool.status === 'changed' ? 'warn' : 'plain'}>{tool.status}</Badge>}
    </summary>
    <div className="tool-body">
      <p className="text">{tool.description}</p>
      {tool.stripped.length > 0 && <p className="note">svc removed hidden characters: {tool.stripped.join(', ')}</p>}
      <Json value={tool.input_schema} label={`Schema of ${tool.name}`} />
    </div>
  </details>
)

interface ChangesProps {
  readonly server: string
  readonly tools: readonly Tool[]
  readonly mayApprove: boolean
}

/** The changed tools, each beside what was approved. An approval names the version that is shown. */
function Changes({ server, tools, mayApprove }: ChangesProps) {
  const approve = useChange(
    (chosen: readonly Tool[]) =>
      client.post('/api/v1/mcp/servers/{name}/approve', {
        path: { name: server },
        body: { tools: chosen.map(({ name, version }) => ({ name, version })) },
      }),
    { keys: [['mcp'], ['tools']] }
  )
  return (
    <>
      <Problem error={approve.error} />
      {mayApprove && tools.length > 1 && (
        <div className="row">
          <button type="button" className="button" disabled={approve.isRunning} onClick={() => approve.run(tools)}>
            Approve all {tools.length}
          </button>
        </div>
      )}
      {tools.map(tool => (
        <section key={tool.name} className="card" aria-label={`Changes of ${tool.name}`}>
          <div className="card-head">
            <h3 className="section-title">
              <code>{tool.name}</code>
            </h3>
            {mayApprove && (
              <button
                type="button"
                className="button button-primary"
                disabled={approve.isRunning}
                onClick={() => approve.run([tool])}
              >
                Approve
              </button>
            )}
          </div>
          <Comparison tool={tool} />
        </section>
      ))}
    </>
  )
}

const MEMBERS = [
  ['title', 'Title'],
  ['description', 'Description'],
  ['input_schema', 'Arguments'],
  ['output_schema', 'Structured result'],
  ['annotations', 'Annotations'],
  ['ui', 'App'],
] as const

const textOf = (value: unknown) =>
  value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2)

function Comparison({ tool }: { readonly tool: Tool }) {
  const { approved } = tool
  if (approved === null) return <p className="facts-none">{tool.difference.join(' ')}</p>
  const changed = MEMBERS.map(([member, name]) => ({
    name,
    before: textOf(approved[member]),
    after: textOf(tool[member]),
  })).filter(({ before, after }) => before !== after)
  return (
    <div className="comparison">
      <span className="comparison-head muted small">Approved</span>
      <span className="comparison-head muted small">Now</span>
      {changed.map(({ name, before, after }) => {
        const parts = differing(before, after)
        return (
          <div key={name} className="comparison-row">
            <h4 className="comparison-name muted small">{name}</h4>
            <Side parts={parts} side="gone" label={`${name}, approved`} />
            <Side parts={parts} side="new" label={`${name}, now`} />
          </div>
        )
      })}
    </div>
  )
}

function Side({
  parts,
  side,
  label,
}: {
  readonly parts: readonly Part[]
  readonly side: 'gone' | 'new'
  readonly label: string
}) {
  const Mark = side === 'gone' ? 'del' : 'ins'
  return (
    <pre className="compared" tabIndex={0} role="region" aria-label={label}>
      {parts.map(({ kind, text }, at) =>
        kind === 'same' ? <span key={at}>{text}</span> : kind === side ? <Mark key={at}>{text}</Mark> : null
      )}
    </pre>
  )
}

type TestEvent = Schemas['McpTestEvent']
type TestStep = Extract<TestEvent, { readonly type: 'step' }>

const STEP_NAMES: Readonly<Record<TestStep['step'], string>> = {
  resolve: 'Find the address',
  connect: 'Connect',
  tls: 'Check the certificate',
  start: 'Start the program',
  auth: 'Authenticate',
  handshake: 'Agree on the protocol',
  list: 'List the tools',
  call: 'Call the tool',
}

/** Tests the connection: each step appears as soon as the server has done it. */
export function ServerTest({ server }: { readonly server: string }) {
  const [steps, setSteps] = useState<readonly TestStep[]>([])
  const [state, setState] = useState<'none' | 'running' | 'ok' | 'failed'>('none')
  const [problem, setProblem] = useState<unknown>()
  const ending = useRef<AbortController>(undefined)
  useEffect(() => () => ending.current?.abort(), [])
  const again = useAgain(['mcp'])
  const test = async () => {
    ending.current?.abort()
    const own = (ending.current = new AbortController())
    setSteps([])
    setProblem(undefined)
    setState('running')
    try {
      const events = client.stream('post', '/api/v1/mcp/servers/{name}/test', {
        path: { name: server },
        body: {},
        signal: own.signal,
      })
      for await (const event of events) {
        if (event.type === 'step') setSteps(all => [...all, event])
        if (event.type === 'error') setProblem(Object.assign(new Error(event.error), { code: event.error_code }))
        if (event.type === 'end') setState(event.ok ? 'ok' : 'failed')
      }
      await again()
    } catch (error) {
      if (own.signal.aborted) return
      setProblem(error)
      setState('failed')
    }
  }
  return (
    <div className="pane">
      <div className="row">
        <button type="button" className="button button-primary" disabled={state === 'running'} onClick={() => void test()}>
          {state === 'none' ? 'Test the connection' : state === 'running' ? 'Testing …' : 'Test again'}
        </button>
        {state === 'ok' && <Badge tone="ok">works</Badge>}
        {state === 'failed' && <Badge tone="bad">does not work</Badge>}
      </div>
      <Steps label="Steps of the test">
        {steps.map(({ step, ms, found, error }) => (
          <Step
            key={step}
            state={error ? 'bad' : 'ok'}
            name={STEP_NAMES[step]}
            about={error ? `${error.message} (${error.class})` : found}
            end={durationOf(ms)}
          />
        ))}
      </Steps>
      <Problem error={problem} />
    </div>
  )
}

const IssuerField = () => (
  <label className="field">
    <span>Issuer of its logins (optional)</span>
    <input className="input" name="issuer" type="url" maxLength={2_000} placeholder="https://login.example" />
    <span className="muted">svc logs in only there. Required if the issuer has a private address.</span>
  </label>
)

type AddBody = BodyOf<'post', '/api/v1/mcp/servers'>

/** Adds a remote server. Programs are added by the command line only, unless the configuration allows it. */
export function AddServer({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate()
  const add = useChange((body: AddBody) => client.post('/api/v1/mcp/servers', { body }), {
    keys: [['mcp'], ['tools']],
    onDone({ server }) {
      onClose()
      void navigate({ to: '/mcp', search: { id: server } })
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    const variable = textIn(data, 'api_key_env')
    const issuer = textIn(data, 'issuer')
    add.run({
      name: textIn(data, 'name'),
      url: textIn(data, 'url'),
      ...(variable === '' ? {} : { api_key_env: variable }),
      ...(issuer === '' ? {} : { oauth: { issuer } }),
    })
  }
  return (
    <Panel title="Add an MCP server" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          <span>Name</span>
          <input className="input" name="name" required maxLength={32} autoFocus spellCheck={false} />
          <span className="muted">The names of its tools begin with it.</span>
        </label>
        <label className="field">
          <span>URL</span>
          <input className="input" name="url" type="url" required maxLength={2_000} placeholder="https://tools.example/mcp" />
        </label>
        <label className="field">
          <span>Variable with its key (optional)</span>
          <input className="input" name="api_key_env" pattern="SVC_MCP_[A-Z0-9_]+" placeholder="SVC_MCP_WEATHER_KEY" />
          <span className="muted">A variable of the environment of svc whose name begins with SVC_MCP_.</span>
        </label>
        <IssuerField />
        <p className="muted small">
          Add local programs with <code>svc mcp add</code>.
        </p>
        <Problem error={add.error} />
        {add.isRunning && (
          <p className="muted small" role="status">
            The server loads it with a reload, which can take some seconds.
          </p>
        )}
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={add.isRunning}>
            {add.isRunning ? 'Adding …' : 'Add'}
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}
