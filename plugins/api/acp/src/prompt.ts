import type { ContentBlock } from '@agentclientprotocol/sdk'
import { paramInvalid } from './errors.ts'

/**
 * The message of a prompt. Links and resources stand as links in the text; the content of embedded resources follows at the end.
 * Throws invalid params for images and audio, which chat does not take.
 */
export function messageOf(prompt: readonly ContentBlock[]): string {
  const parts = prompt.map(partOf)
  const text = parts.map(part => part.text).join('')
  return [text, ...parts.flatMap(part => part.context ?? [])].join('\n\n')
}

/** The text of a block, and what follows at the end of the message. */
interface MessagePart {
  readonly text: string
  readonly context?: string
}

function partOf(block: ContentBlock, at: number): MessagePart {
  if (block.type === 'text') return { text: block.text }
  if (block.type === 'resource_link') return { text: linkOf(block.uri, block.title ?? block.name) }
  if (block.type === 'resource') {
    const { resource } = block
    const text = linkOf(resource.uri)
    if ('text' in resource) return { text, context: `Content of ${resource.uri}:\n${fenced(resource.text)}` }
    return { text, context: `The content of ${resource.uri} (${resource.mimeType ?? 'binary'}) is not text and is left out.` }
  }
  throw paramInvalid(`prompt[${at}]`, `is of type ${block.type}, which svc does not accept: see promptCapabilities`)
}

const linkOf = (uri: string, name?: string) => {
  const shown = name ?? decodedName(uri)
  return shown === uri ? uri : `[${shown}](${uri})`
}

/** The last part of a URI. */
function decodedName(uri: string): string {
  const last = uri.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last) || uri
  } catch {
    return last || uri
  }
}

/** Text in a fence that it cannot close. */
function fenced(text: string): string {
  let longest = 2
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text.endsWith('\n') ? text : `${text}\n`}${fence}`
}
