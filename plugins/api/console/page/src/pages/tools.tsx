import { useQuery } from '@tanstack/react-query'
import type { ReplyOf, Schemas } from '@svc/client'
import { lazy, Suspense } from 'react'
import { Chips, SearchLink, Tabs } from '../address.tsx'
import { allows, client, session } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { Back, ListPage, Search } from '../list.tsx'
import { Json } from '../message.tsx'
import { Facts } from '../parts.tsx'
import { ItemHead, shortName, Stale, useItems, withWords } from '../records.tsx'
import { tools } from '../router.tsx'
import { Badge, Empty, Failure, Loading, type Tone } from '../states.tsx'
import { useValue } from '../value.ts'
import { visible } from '../visible-text.ts'

const Call = lazy(() => import('../tool-call.tsx').then(({ Call }) => ({ default: Call })))

type Listed = ReplyOf<'get', '/api/v1/tools'>['tools'][number]
type Detail = Schemas['ToolDetail']

const CHANGES = /tool|mcp_|plugin_|mode|reload/

export function Tools() {
  const { q, category, id } = tools.useSearch()
  useFreshening({ key: ['tools'], isAbout: ({ type }) => CHANGES.test(type) && !/tool_call/.test(type) })
  const all = useItems(['tools'], async signal => (await client.get('/api/v1/tools', { signal })).tools)
  const known = withWords(all, q, ({ name, description }) => `${name} ${description}`)
  const list = category === undefined ? known : { ...known, items: known.items.filter(tool => tool.category === category) }
  const categories = [...new Set(all.items.map(tool => tool.category))].sort()
  return (
    <ListPage
      title="Tools"
      filters={
        <>
          <Search label="Search tools" />
          <Chips
            label="Categories"
            name="category"
            values={[[undefined, 'All'], ...categories.map(name => [name, name] as const)]}
          />
        </>
      }
      list={list}
      keyOf={tool => tool.name}
      entry={tool => <Entry tool={tool} />}
      select={tool => ({ id: tool.name, tab: undefined })}
      isSelected={tool => tool.name === id}
      empty={<Nothing isFiltered={q !== undefined || category !== undefined} />}
      hasSelection={id !== undefined}
      detail={
        id === undefined ? (
          <Empty title="Select a tool">Call it with a form, and read its schema here.</Empty>
        ) : (
          <Tool key={id} name={id} />
        )
      }
    />
  )
}

const Nothing = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="Nothing found">
      Search for other words, or <SearchLink change={{ q: undefined, category: undefined }}>show all</SearchLink>.
    </Empty>
  ) : (
    <Empty title="No tools">
      Enable a plugin that has some, or connect an MCP server: <code>svc mcp add</code>.
    </Empty>
  )

const Entry = ({ tool: { name, description, category } }: { readonly tool: Listed }) => (
  <>
    <span className="row spread">
      <code className="list-name clip grow">{visible(name)}</code>
      <span className="muted small">{category}</span>
    </span>
    <span className="list-match clip">{description}</span>
  </>
)

const EFFECTS: Readonly<Record<Detail['effects'][number], Tone>> = {
  read: 'plain',
  write: 'warn',
  execute: 'bad',
  network: 'accent',
}

function Tool({ name }: { readonly name: string }) {
  const { tab } = tools.useSearch()
  const query = useQuery({
    queryKey: ['tools', name],
    queryFn: ({ signal }) => client.get('/api/v1/tools/{name}', { path: { name }, signal }),
  })
  const { data, error, refetch } = query
  const current = useValue(session)
  if (error && !data) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading rows={6} />
  const mayCall = current.state !== 'in' || allows(current.me, 'tools')
  return (
    <>
      <ItemHead
        title={data.title ?? data.name}
        isCode={!data.title}
        back={<Back />}
        facts={data.plugin === null ? data.category : `${data.category}, from ${shortName(data.plugin)}`}
        badge={
          <span className="row">
            {data.effects.map(effect => (
              <Badge key={effect} tone={EFFECTS[effect]}>
                {effect}
              </Badge>
            ))}
          </span>
        }
      />
      <Stale query={query} />
      <Tabs
        label="Views of the tool"
        values={[
          ...(mayCall ? [[undefined, 'Call'] as const] : []),
          [mayCall ? 'schema' : undefined, 'Schema'],
          ['about', 'About'],
        ]}
      />
      <div className="reader-scroll">
        <View tool={data} tab={tab ?? (mayCall ? 'call' : 'schema')} />
      </div>
    </>
  )
}

function View({ tool, tab }: { readonly tool: Detail; readonly tab: string }) {
  if (tab === 'schema')
    return (
      <div className="pane">
        <h3 className="section-title">Arguments</h3>
        <Json value={tool.input_schema} label="Schema of the arguments" />
        {tool.output_schema !== null && (
          <>
            <h3 className="section-title">Structured result</h3>
            <Json value={tool.output_schema} label="Schema of the structured result" />
          </>
        )}
      </div>
    )
  if (tab === 'about') return <About tool={tool} />
  return (
    <Suspense fallback={<Loading rows={5} />}>
      <Call tool={tool} />
    </Suspense>
  )
}

const About = ({ tool }: { readonly tool: Detail }) => (
  <div className="pane">
    <p className="text">{tool.description}</p>
    <div className="card">
      <Facts
        facts={[
          ['Name', <code key="name">{tool.name}</code>],
          ['Category', tool.category],
          ['Plugin', tool.plugin],
          ['Effects', tool.effects.join(', ') || 'none'],
          ['Modes of turns', tool.modes === null ? 'all that allow its effects' : tool.modes.join(', ')],
          ['A person approves each call', tool.asks ? 'yes' : 'no'],
          ['Time limit', tool.timeout_ms === null ? 'that of chats' : `${tool.timeout_ms / 1_000} s`],
          ['Can be called now', tool.callable ? 'yes' : 'no: the mode of the server, or the tool, allows turns only'],
        ]}
      />
    </div>
  </div>
)
