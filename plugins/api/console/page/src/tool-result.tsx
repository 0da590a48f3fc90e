import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { allows, client, session } from './api.ts'
import { isSmall } from './bridge.ts'
import type { CallResult } from './call-outcome.tsx'
import { type PluginPage, titleOf, usePagesAt } from './plugin-pages.ts'
import { isRecord } from './schema-input.tsx'
import { Loading } from './states.tsx'
import { valueOf } from './tool-value.ts'
import { useValue } from './value.ts'
import { visible } from './visible-text.ts'

const ToolApp = lazy(() => import('./tool-app.tsx'))
const PluginPart = lazy(() => import('./plugin-part.tsx').then(module => ({ default: module.PluginPart })))

interface ToolResultProps {
  readonly tool: string
  readonly input: unknown
  readonly result: CallResult
  /** Whether an app runs at once, and not after a click. A view is no code: it is shown at once everywhere. */
  readonly isOpen?: boolean
  /** The plugin that had the tool when it was called, if that is known. */
  readonly plugin?: string | undefined
  /** The plain result. */
  readonly text: ReactNode
  /** The plain result is shown elsewhere, too, so that it is here only when the reader wants it. */
  readonly isTextElsewhere?: boolean
}

/** The result of a tool: by the page of its plugin or the app of its MCP server, if there is one, otherwise as text. */
export default function ToolResult(props: ToolResultProps) {
  const { tool, input, result, isOpen = false, plugin, text, isTextElsewhere = false } = props
  const [choice, setChoice] = useState<'shown' | 'text'>()
  const form = useForm(tool, plugin, !result.isError)
  const plain = isTextElsewhere && choice !== 'text' ? null : text
  if (!form) return plain
  if (!isSmall({ input, result }))
    return (
      <>
        {plain}
        <p className="muted small">The result is too large for {form.name}, so it is text only.</p>
      </>
    )
  const isShown = choice === undefined ? isOpen || form.page?.url === null : choice === 'shown'
  if (!isShown)
    return (
      <>
        {plain}
        <button type="button" className="button" onClick={() => setChoice('shown')}>
          Show {form.name}
        </button>
      </>
    )
  return (
    <>
      <Suspense fallback={<Loading rows={4} />}>
        {form.page ? (
          <OfPlugin page={form.page} tool={tool} input={input} result={result} />
        ) : (
          <ToolApp tool={tool} input={isRecord(input) ? input : {}} result={result} />
        )}
      </Suspense>
      <button type="button" className="button" onClick={() => setChoice('text')}>
        Show as text
      </button>
    </>
  )
}

interface Form {
  /** In a sentence. */
  readonly name: string
  /** Absent for an MCP App. */
  readonly page?: PluginPage
}

/** Only tools of MCP servers have apps: `<server>__<tool>`. */
const mayHaveApp = (tool: string) => tool.includes('__')

/** What shows results of the tool. The server names for each page the tools of its own plugin; the result itself names nothing. */
function useForm(tool: string, plugin: string | undefined, isWanted: boolean): Form | undefined {
  const current = useValue(session)
  const mayCall = current.state !== 'in' || allows(current.me, 'tools')
  const page = usePagesAt('tool_result').find(
    ({ tools, ...one }) => tools.includes(tool) && (plugin ?? one.plugin) === one.plugin
  )
  const { data } = useQuery({
    queryKey: ['tools', tool],
    queryFn: ({ signal }) => client.get('/api/v1/tools/{name}', { path: { name: tool }, signal }),
    enabled: isWanted && mayCall && page === undefined && mayHaveApp(tool),
    retry: false,
  })
  if (!isWanted) return undefined
  if (page) return { name: `the page of ${visible(page.plugin)}`, page }
  return mayCall && data?.app ? { name: `the app of ${visible(tool)}` } : undefined
}

interface OfPluginProps {
  readonly page: PluginPage
  readonly tool: string
  readonly input: unknown
  readonly result: CallResult
}

function OfPlugin({ page, tool, input, result }: OfPluginProps) {
  const [given] = useState(() => ({ key: crypto.randomUUID(), tool, arguments: input, value: valueOf(result) }))
  return (
    <section className="tool-app stack" aria-label={`${titleOf(page)}: result of ${visible(tool)}`}>
      <p className="muted small">
        From the plugin <code>{visible(page.plugin)}</code>. Enter no key or token in it.
      </p>
      <div className={page.url === null ? undefined : 'plugin-panel-frame'}>
        <PluginPart page={page} given={given} />
      </div>
    </section>
  )
}
