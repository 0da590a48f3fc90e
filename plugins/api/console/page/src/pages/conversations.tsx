import { Link } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { lazy, type ReactNode, Suspense } from 'react'
import { Tabs } from '../address.tsx'
import { client } from '../api.ts'
import { ReaderHead, titleOf } from '../conversation-head.tsx'
import { useFreshening } from '../fresh.ts'
import { filtersOf, ListPage, ListProblem, Search, useCursorList } from '../list.tsx'
import { isPluginTab, usePluginTabs } from '../plugin-pages.ts'
import { conversations } from '../router.tsx'
import { Count, Empty, Failure, Loading, Time } from '../states.tsx'
import { Messages, useMessages } from '../stored-messages.tsx'

type Listed = ReplyOf<'get', '/api/v1/conversations'>['conversations'][number]

const LIST_PAGE = 50

export function Conversations() {
  const { q, label, id } = conversations.useSearch()
  useFreshening({ key: ['conversations'], isAbout: ({ type }) => /turn_(completed|failed|cancelled)|conversation_/.test(type) })
  const list = useCursorList({
    key: ['conversations', { q, label }],
    read: (from, signal) =>
      client.get('/api/v1/conversations', {
        query: { limit: LIST_PAGE, detail: 'full', ...filtersOf({ q, label }, 'q', 'label'), ...from },
        signal,
      }),
    itemsOf: page => page.conversations,
  })
  return (
    <ListPage
      title="Conversations"
      filters={<Search label="Search conversations" />}
      list={list}
      keyOf={item => item.conversation_id}
      entry={item => <Entry item={item} />}
      select={item => ({ id: item.conversation_id })}
      isSelected={item => item.conversation_id === id}
      empty={<Nothing isSearch={q !== undefined || label !== undefined} />}
      hasSelection={id !== undefined}
      detail={
        id === undefined ? (
          <Empty title="Select a conversation">Its messages, tools and tokens appear here.</Empty>
        ) : (
          <Reader key={id} id={id} />
        )
      }
    />
  )
}

const Nothing = ({ isSearch }: { readonly isSearch: boolean }) =>
  isSearch ? (
    <Empty title="Nothing found">
      Search for other words, or <Link to="/conversations">show all</Link>.
    </Empty>
  ) : (
    <Empty title="No conversations yet">
      Start one in the <Link to="/playground">playground</Link>, or with <code>svc chat</code>.
    </Empty>
  )

function Entry({ item }: { readonly item: Listed }) {
  const [match] = item.matches ?? []
  return (
    <>
      <span className="list-name clip">{titleOf(item)}</span>
      {match && (
        <span className="list-match clip">
          <Marked text={match.text} marks={match.marks} />
        </span>
      )}
      <span className="list-facts">
        <Time at={item.updated_at} />
        <span>
          <Count value={item.message_count} /> messages
        </span>
        {item.model && <span className="clip">{item.model}</span>}
      </span>
    </>
  )
}

/** A text with its found words marked. */
function Marked({ text, marks }: { readonly text: string; readonly marks: readonly (readonly number[])[] }) {
  const pieces: ReactNode[] = []
  let at = 0
  for (const [from = 0, to = 0] of marks) {
    pieces.push(text.slice(at, from), <mark key={from}>{text.slice(from, to)}</mark>)
    at = to
  }
  return <>{[...pieces, text.slice(at)]}</>
}

function Reader({ id }: { readonly id: string }) {
  const { tab } = conversations.useSearch()
  const pluginTabs = usePluginTabs('conversation')
  const read = useMessages(id, ['conversation', id])
  const [first] = read.pages
  if (!first) return read.error ? <Failure error={read.error} onRetry={read.readAgain} /> : <Loading rows={8} />
  return (
    <>
      <ReaderHead conversation={first} />
      <ListProblem list={read} />
      {pluginTabs.length > 0 && <Tabs label="Views of the conversation" values={[[undefined, 'Messages'], ...pluginTabs]} />}
      {isPluginTab(tab) ? (
        <Suspense fallback={<Loading rows={8} />}>
          <PluginTab place="conversation" tab={tab} id={id} />
        </Suspense>
      ) : (
        <Messages id={id} messages={read.items} />
      )}
    </>
  )
}

const PluginTab = lazy(() => import('../plugin-part.tsx').then(module => ({ default: module.PluginTab })))
