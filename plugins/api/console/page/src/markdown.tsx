/** @jsxImportSource react */
// Text of messages stays as it was written: many scripts need marks of direction.
import { memo, type ReactNode } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { PageLink } from './page-link.tsx'
import { visible } from './visible-text.ts'

const PLUGINS = [remarkGfm]

interface ModelLinkProps {
  /** The address, as a model or a tool has written it. */
  readonly to: string
  readonly children: ReactNode
}

/** A link opens apart, and names the host that it leads to. Other addresses than those of the web are text. */
function ModelLink({ to, children }: ModelLinkProps) {
  if (!/^https?:/i.test(to) || !URL.canParse(to))
    return (
      <span>
        {children}
        {to !== '' && <span className="muted"> ({visible(to)})</span>}
      </span>
    )
  const { href, host } = new URL(to)
  return (
    <>
      <a href={href} target="_blank" rel="noreferrer noopener" title={visible(href)}>
        {children}
      </a>
      {to !== children && <span className="muted"> ({host})</span>}
    </>
  )
}

/** Text of models and tools is only text: no HTML, no images that load, and links that open apart. */
const COMPONENTS: Components = {
  a: ({ href = '', children }) => <ModelLink to={href}>{children}</ModelLink>,
  img: ({ alt, src }) => <span className="muted">[image: {alt || String(src ?? '')}]</span>,
  // a heading of a message is none of the page
  h1: ({ children }) => <p className="ask-question">{children}</p>,
  h2: ({ children }) => <p className="ask-question">{children}</p>,
  h3: ({ children }) => <p className="ask-question">{children}</p>,
  h4: ({ children }) => <p className="ask-question">{children}</p>,
  h5: ({ children }) => <p className="ask-question">{children}</p>,
  h6: ({ children }) => <p className="ask-question">{children}</p>,
  pre: ({ children }) => <pre tabIndex={0}>{children}</pre>,
  input: ({ checked }) => <span>{checked ? '☑ ' : '☐ '}</span>,
}

/** Text of a page of a plugin leads to pages of the console only. Other addresses are text. */
const OF_PLUGIN: Components = {
  ...COMPONENTS,
  a: ({ href = '', children }) => <PageLink to={href}>{children}</PageLink>,
}

interface MarkdownProps {
  readonly text: string
  readonly isOfPlugin?: boolean
}

/** A line with so many levels of quotes and lists costs the parser seconds, and then its stack. No person writes one. */
const TOO_DEEP = /^(?:[ \t]*(?:[>*+-]|\d{1,9}[.)])){60}/m

const Block = memo(function Block({ text, isOfPlugin }: MarkdownProps) {
  if (TOO_DEEP.test(text)) return <div className="text">{text}</div>
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={isOfPlugin ? OF_PLUGIN : COMPONENTS} skipHtml={false}>
      {text}
    </ReactMarkdown>
  )
})

/** Splits at empty lines outside of code, so that only the last block of a growing text is parsed again. */
function blocksOf(text: string): string[] {
  const blocks: string[] = []
  let lines: string[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode
    // an indented line or a further item continues a list, so it stays with what is before it
    if (line === '' && !isCode && !/^(\s+|[-*+]\s|\d+[.)]\s)/.test(lines.at(-1) ?? '')) {
      if (lines.length > 0) blocks.push(lines.join('\n'))
      lines = []
    } else lines.push(line)
  }
  if (lines.length > 0) blocks.push(lines.join('\n'))
  return blocks
}

export default function Markdown({ text, isOfPlugin = false }: MarkdownProps) {
  return (
    <div className="markdown">
      {blocksOf(text).map((block, at) => (
        <Block key={at} text={block} isOfPlugin={isOfPlugin} />
      ))}
    </div>
  )
}
