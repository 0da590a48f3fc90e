import { lazy, Suspense } from 'react'
import { PluginFrame } from './plugin-frame.tsx'
import { type PluginPage, tabOf, titleOf, usePagesAt } from './plugin-pages.ts'
import { Card } from './parts.tsx'
import { Empty, Loading } from './states.tsx'
import type { ToolGiven } from './view-data.ts'

const View = lazy(() => import('./view.tsx'))

interface PluginPartProps {
  readonly page: PluginPage
  /** The id of the run or conversation that it is shown for. */
  readonly ids?: Readonly<Record<string, string>>
  /** The result of a tool that it shows. */
  readonly given?: ToolGiven
}

const NONE: Readonly<Record<string, string>> = {}

/** A page of a plugin in its place: a view, which the console draws, or an app in a frame. */
export function PluginPart({ page, ids = NONE, given }: PluginPartProps) {
  if (page.url === null)
    return (
      <Suspense fallback={<Loading rows={6} />}>
        <View page={page} ids={ids} given={given} />
      </Suspense>
    )
  return (
    <PluginFrame
      title={`${page.title}, a page of ${page.plugin}`}
      url={page.url}
      rights={page.requests}
      shown={{ place: page.place, ...ids, ...(given && { tool: given.tool, arguments: given.arguments, result: given.value }) }}
    />
  )
}

/** Says whose page it is, where the page cannot change it. */
export const PluginNote = ({ page }: { readonly page: PluginPage }) => (
  <p className="muted small">
    {page.place === 'page' ? 'A page of the plugin' : 'From the plugin'} <code>{page.plugin}</code>. Enter no key or token in it.
  </p>
)

const MOST_PANELS = 12

/** The panels of plugins on the overview. */
export default function PluginPanels() {
  const panels = usePagesAt('overview').slice(0, MOST_PANELS)
  return panels.map(page => (
    <Card key={page.name} title={titleOf(page)} actions={<PluginNote page={page} />}>
      <div className={page.url === null ? 'plugin-panel' : 'plugin-panel plugin-panel-frame'}>
        <PluginPart page={page} />
      </div>
    </Card>
  ))
}

interface PluginTabProps {
  readonly place: 'run' | 'conversation'
  /** The member of the address that names the tab. */
  readonly tab: string | undefined
  readonly id: string
}

/** The open tab of a plugin of a run or conversation. */
export function PluginTab({ place, tab, id }: PluginTabProps) {
  const page = usePagesAt(place).find(one => tabOf(one) === tab)
  if (!page) return <Empty title="There is no such tab">Its plugin does not run, or your scopes do not allow the page.</Empty>
  return (
    <div className="reader-scroll pad stack" tabIndex={0} role="region" aria-label={titleOf(page)}>
      <PluginNote page={page} />
      <div className={page.url === null ? undefined : 'plugin-panel-frame'}>
        <PluginPart key={id} page={page} ids={{ [place]: id }} />
      </div>
    </div>
  )
}
