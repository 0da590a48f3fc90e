import { useQueryClient } from '@tanstack/react-query'
import { Component, type ReactNode } from 'react'
import { type PluginPage, usePluginView } from './plugin-pages.ts'
import { Stale } from './records.tsx'
import { Failure, Loading } from './states.tsx'
import { ViewChart, ViewMarkdown, ViewStats } from './view-parts.tsx'
import type { PartProps, ToolGiven, View, ViewSource } from './view-data.ts'
import { ViewForm } from './view-form.tsx'
import { ViewTable } from './view-table.tsx'
import { visible } from './visible-text.ts'

interface PluginViewProps {
  readonly page: PluginPage
  /** The id of the run or conversation that it is shown for. */
  readonly ids: Readonly<Record<string, string>>
  readonly given: ToolGiven | undefined
}

/** A page of a plugin as data. Nothing of it is code: it is drawn with the parts of the console. */
export default function PluginView({ page, ids, given }: PluginViewProps) {
  const query = usePluginView(page.name)
  const { data, error, refetch } = query
  const queries = useQueryClient()
  if (!data) return error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={6} />
  if (data.view === null)
    return (
      <>
        <Stale query={query} />
        <Invalid plugin={page.plugin} problems={data.problems} />
      </>
    )
  const source: ViewSource = { name: page.name, rights: page.requests, ids, given }
  const readAgain = () => queries.invalidateQueries({ queryKey: ['plugin-view', page.name] })
  return (
    <div className="stack view">
      <Stale query={query} />
      {data.view.parts.some(part => part.request !== undefined) && (
        <div className="row">
          <button type="button" className="button button-quiet" onClick={() => void readAgain()}>
            Refresh
          </button>
        </div>
      )}
      {data.view.parts.map((part, at) => (
        <Boundary key={`${at} ${part.type}`}>
          <PartOf part={part} at={at} source={source} onChanged={readAgain} />
        </Boundary>
      ))}
    </div>
  )
}

function PartOf({ part, ...rest }: PartProps<View['parts'][number]>) {
  switch (part.type) {
    case 'table':
      return <ViewTable part={part} {...rest} />
    case 'stats':
      return <ViewStats part={part} {...rest} />
    case 'chart':
      return <ViewChart part={part} {...rest} />
    case 'markdown':
      return <ViewMarkdown part={part} {...rest} />
    case 'form':
      return <ViewForm part={part} {...rest} />
  }
}

const Invalid = ({ plugin, problems }: { readonly plugin: string; readonly problems: readonly string[] }) => (
  <div className="failure" role="alert">
    <p className="failure-title">The view of this page is not valid, so it is not shown.</p>
    <p>Its author can fix it. An update of the plugin {plugin} may help.</p>
    <ul>
      {problems.map(problem => (
        <li key={problem}>
          <code>{visible(problem)}</code>
        </li>
      ))}
    </ul>
  </div>
)

/** An answer that no part can show stops that part, and nothing else. */
class Boundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state = { error: undefined }
  static getDerivedStateFromError = (error: unknown) => ({ error })
  override render() {
    return this.state.error === undefined ? (
      this.props.children
    ) : (
      <Failure error={this.state.error} onRetry={() => this.setState({ error: undefined })} />
    )
  }
}
