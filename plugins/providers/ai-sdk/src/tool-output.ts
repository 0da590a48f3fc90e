import type { ContentPart, ToolResultPart } from '@svc/core/contracts'
import type { OutputPart, ToolOutput, Version } from './sdk.ts'

/** What a tool answered, in the form of the version. Images stay images; audio, links and resources are told in words. */
export function toOutput({ content, isError }: ToolResultPart, version: Version): ToolOutput {
  const hasImage = content.some(part => part.type === 'image')
  if (isError || !hasImage) return { type: isError ? 'error-text' : 'text', value: content.map(wordsOf).join('\n') }
  return { type: 'content', value: content.map(part => toOutputPart(part, version)) }
}

const toOutputPart = (part: ContentPart, version: Version): OutputPart =>
  part.type === 'image' ? IMAGES[version](part.data, part.mimeType) : { type: 'text', text: wordsOf(part) }

const IMAGES: { readonly [V in Version]: (data: string, mediaType: string) => OutputPart } = {
  v4: (data, mediaType) => ({ type: 'file', mediaType, data: { type: 'data', data } }),
  v3: (data, mediaType) => ({ type: 'image-data', mediaType, data }),
  v2: (data, mediaType) => ({ type: 'media', mediaType, data }),
}

function wordsOf(part: ContentPart): string {
  if (part.type === 'text') return part.text
  if (part.type === 'resource_link') return `${part.name}: ${part.uri}`
  if (part.type === 'image' || part.type === 'audio') return `[${part.type}: ${part.mimeType}]`
  // a resource; or a form that nobody here knows: those of other servers pass through
  const { resource } = part as { readonly resource?: { readonly text?: unknown } }
  return typeof resource?.text === 'string' ? resource.text : JSON.stringify(resource ?? part)
}
