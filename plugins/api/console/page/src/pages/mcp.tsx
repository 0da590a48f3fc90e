import type { Schemas } from '@svc/client'
import { lazy, Suspense } from 'react'
import { Chips, SearchLink, Tabs } from '../address.tsx'
import { allows, client, session } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, ListPage, Search } from '../list.tsx'
import { Json } from '../message.tsx'
import { Action, Facts } from '../parts.tsx'
import { Adding, ItemHead, Nothing, useAgain, useItems, withWords } from '../records.tsx'
import { mcp } from '../router.tsx'
import { Badge, Empty, Failure, Loading, Time, type Tone } from '../states.tsx'
import { useValue } from '../value.ts'
import { LogLines } from '../log-lines.tsx'

const AddServer = lazy(() => import('../mcp-server.tsx').then(({ AddServer }) => ({ default: AddServer })))
const ServerTools = lazy(() => import('../mcp-server.tsx').then(({ ServerTools }) => ({ default: ServerTools })))
const ServerTest = lazy(() => import('../mcp-server.tsx').then(({ ServerTest }) => ({ default: ServerTest })))
const ServerLogin = lazy(() => import('../mcp-login.tsx').then(({ ServerLogin }) => ({ default: ServerLogin })))

type Server = Schemas['McpServer']

const TONES: Readonly<Record<Server['state'], Tone>> = {
  connected: 'ok',
  connecting: 'accent',
  reconnecting: 'accent',
  degraded: 'warn',
  needs_auth: 'warn',
  disconnected: 'plain',
  disabled: 'plain',
  failed: 'bad',
  quarantined: 'bad',
}
const wordsOf = (state: string) => state.replaceAll('_', ' ')

const FILTERS = [
  [undefined, 'All'],
  ['changed', 'Changed tools'],
  ['bad', 'Not connected'],
] as const

const isShown = ({ changed, state }: Server, filter: string | undefined) =>
  filter === undefined || (filter === 'changed' ? changed.length > 0 : state !== 'connected')

export function McpServers() {
  const { q, state, id } = mcp.useSearch()
  useFreshening({ key: ['mcp'], isAbout: ({ type }) => /mcp_/.test(type) })
  const all = useItems(['mcp', 'servers'], async signal => (await client.get('/api/v1/mcp/servers', { signal })).servers)
  const known = withWords(all, q, ({ name, url }) => `${name} ${url ?? ''}`)
  const list = { ...known, items: known.items.filter(server => isShown(server, state)) }
  const current = useValue(session)
  const mayChange = current.state === 'in' && allows(current.me, 'admin')
  const selected = all.items.find(({ name }) => name === id)
  return (
    <ListPage
      title="MCP servers"
      actions={
        <Adding
          label="Add a server"
          dialog={onClose => (
            <Suspense>
              <AddServer onClose={onClose} />
            </Suspense>
          )}
        />
      }
      filters={
        <>
          <Search label="Search MCP servers" />
          <Chips label="States" name="state" values={FILTERS} />
        </>
      }
      list={list}
      keyOf={server => server.name}
      entry={server => <Entry server={server} />}
      select={server => ({ id: server.name, tab: undefined })}
      isSelected={server => server.name === id}
      empty={
        <Nothing isFiltered={q !== undefined || state !== undefined} name="server" names="MCP servers">
          Add one here, or with <code>svc mcp add</code>.
        </Nothing>
      }
      hasSelection={id !== undefined}
      detail={
        selected ? (
          <ServerView key={id} server={selected} mayChange={mayChange} />
        ) : id === undefined ? (
          <Empty title="Select a server">Its state, tools, changes and log appear here.</Empty>
        ) : all.error ? (
          <div className="bar only-narrow">
            <Back />
          </div>
        ) : all.isPending ? (
          <Loading rows={6} />
        ) : (
          <Empty title={`There is no server ${id}`}>
            It was removed. <SearchLink change={{ id: undefined }}>Show all</SearchLink>
          </Empty>
        )
      }
    />
  )
}

const Entry = ({ server: { name, state, tools, changed, url, runs } }: { readonly server: Server }) => (
  <>
    <span className="row spread">
      <span className="list-name clip grow">{name}</span>
      {changed.length > 0 && <Badge tone="warn">{changed.length} changed</Badge>}
      <Badge tone={TONES[state]}>{wordsOf(state)}</Badge>
    </span>
    <span className="list-facts">
      <span>
        {tools.length} {tools.length === 1 ? 'tool' : 'tools'}
      </span>
      <span className="clip">{url ?? runs}</span>
    </span>
  </>
)

function ServerView({ server, mayChange }: { readonly server: Server; readonly mayChange: boolean }) {
  const { tab } = mcp.useSearch()
  const changed = server.changed.length
  return (
    <>
      <ItemHead
        title={server.name}
        back={<Back />}
        facts={<Where server={server} />}
        badge={<Badge tone={TONES[server.state]}>{wordsOf(server.state)}</Badge>}
      >
        {mayChange && <Switches server={server} />}
      </ItemHead>
      <Tabs
        label="Views of the server"
        values={[
          [undefined, 'State'],
          ['tools', `Tools ${server.tools.length}`],
          ['changes', changed === 0 ? 'Changes' : `Changes ${changed}`],
          ...(mayChange ? [['test', 'Test'] as const] : []),
          ['log', 'Log'],
        ]}
      />
      <div className="reader-scroll">
        <Suspense fallback={<Loading rows={5} />}>
          <View server={server} tab={tab} mayChange={mayChange} />
        </Suspense>
      </div>
    </>
  )
}

/** Where the server is: its address, or the command that starts it. */
function Where({ server: { url, command, runs } }: { readonly server: Server }) {
  const text = url ?? command?.join(' ')
  if (text === undefined) return runs
  return (
    <code className="command clip" title={text}>
      {text}
    </code>
  )
}

interface ViewProps {
  readonly server: Server
  readonly tab: string | undefined
  readonly mayChange: boolean
}

function View({ server, tab, mayChange }: ViewProps) {
  if (tab === 'tools' || tab === 'changes')
    return <ServerTools server={server.name} isChanges={tab === 'changes'} mayApprove={mayChange} />
  if (tab === 'test' && mayChange) return <ServerTest server={server.name} />
  if (tab === 'log') return <Log server={server} />
  return <State server={server} mayChange={mayChange} />
}

function State({ server, mayChange }: Pick<ViewProps, 'server' | 'mayChange'>) {
  return (
    <div className="pane">
      {server.state === 'needs_auth' && mayChange && <ServerLogin server={server.name} />}
      {server.last_error && (
        <Failure error={Object.assign(new Error(server.last_error.message), { code: server.last_error.class })} />
      )}
      {server.changed.length > 0 && (
        <p className="note note-warn">
          {server.changed.length === 1 ? 'A tool has' : `${server.changed.length} tools have`} changed, and cannot be used until
          someone approves. <SearchLink change={{ tab: 'changes' }}>See the changes</SearchLink>
        </p>
      )}
      <div className="card">
        <Facts
          facts={[
            ['State', wordsOf(server.state)],
            ['Since', server.since && <Time at={server.since} />],
            ['Runs', server.runs],
            ['Protocol', server.protocol_version],
            ['Failed attempts', server.attempts > 0 && server.attempts],
            ['Next attempt', server.next_retry_at && <Time at={server.next_retry_at} />],
            ['Effects of its tools', server.effects.join(', ') || 'none'],
            ['Time limit of a call', `${server.call_limit_ms / 1_000} s`],
            ['Where it is configured', server.removable ? 'mcp.yaml' : 'the configuration'],
          ]}
        />
      </div>
    </div>
  )
}

function Log({ server: { name, stderr } }: { readonly server: Server }) {
  return (
    <div className="pane">
      {stderr !== null && (
        <>
          <h3 className="section-title">Standard error</h3>
          <Json value={stderr} label={`Standard error of ${name}`} />
        </>
      )}
      <h3 className="section-title">The log of the server about it</h3>
      <LogLines query={{ text: name }} />
    </div>
  )
}

function Switches({ server: { name, state, removable } }: { readonly server: Server }) {
  const again = useAgain(['mcp'], ['tools'])
  const isOff = state === 'disabled' || state === 'quarantined'
  const switchTo = async () => {
    await client.post(isOff ? '/api/v1/mcp/servers/{name}/enable' : '/api/v1/mcp/servers/{name}/disable', { path: { name } })
    await again()
  }
  const remove = async () => {
    await client.delete('/api/v1/mcp/servers/{name}', { path: { name } })
    await again()
  }
  return (
    <>
      <Action label={isOff ? 'Enable' : 'Disable'} act={switchTo} />
      {removable && (
        <Action
          label="Remove"
          kind="bad"
          act={remove}
          confirm={{
            title: `Remove ${name}?`,
            text: 'Its approvals and its login are removed too. Turns cannot use its tools any more.',
          }}
        />
      )}
    </>
  )
}
