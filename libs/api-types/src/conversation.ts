import type { MessageDetail, MessagePart } from '@svc/core/contracts'

type Renamed = Partial<Record<'mimeType' | 'isError' | 'cacheHint' | 'providerData', unknown>>

/** A part of a stored message. Data that only the provider can read, and hints for its cache, are left out. */
export function partRecord(part: MessagePart): { readonly [member: string]: unknown } {
  const { mimeType, isError, cacheHint: _hint, providerData: _data, ...rest } = part as MessagePart & Renamed
  return {
    ...rest,
    ...(mimeType === undefined ? {} : { mime_type: mimeType }),
    ...(isError === undefined ? {} : { is_error: isError }),
  }
}

/** A stored message with its model and tokens, as the API and exports show it. */
export function messageRecord({ id, role, status, provider, model, usage, parts }: MessageDetail) {
  return {
    id,
    role,
    ...(status === undefined ? {} : { status }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(usage && {
      usage: {
        input_tokens: usage.input,
        output_tokens: usage.output,
        ...(usage.cached === undefined ? {} : { cached_tokens: usage.cached }),
        ...(usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite }),
        ...(usage.reasoning === undefined ? {} : { reasoning_tokens: usage.reasoning }),
      },
    }),
    parts: parts.map(partRecord),
  }
}
