import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ReplyOf } from '@svc/client'
import { useRef } from 'react'
import { client } from './api.ts'
import { IMAGE_TYPES, sizeText } from './attached.tsx'
import type { SentPart } from './turn.ts'
import { createValue, useValue } from './value.ts'
import { visible } from './visible-text.ts'

interface Attachment {
  readonly key: string
  readonly name: string
  readonly size: number
  readonly part: SentPart
}

interface Attachments {
  readonly files: readonly Attachment[]
  /** Why files were not added. */
  readonly problem?: string | undefined
}

const MOST_FILES = 32
/** The default of `rest.chat_body_limit`. */
const USUAL_LIMIT = 32 * 1024 * 1024
const UNNAMED_TYPE = 'application/octet-stream'

/** What goes with the next message of the playground. */
export const attachments = createValue<Attachments>({ files: [] })

const LIMIT_KEY = 'rest.chat_body_limit'
const bodyLimit = queryOptions({
  queryKey: ['config', LIMIT_KEY],
  queryFn: ({ signal }) => client.get('/api/v1/config', { query: { key: LIMIT_KEY }, signal }),
  staleTime: Number.POSITIVE_INFINITY,
})

function limitIn(config: ReplyOf<'get', '/api/v1/config'> | undefined): number {
  const value = config?.values.find(one => one.key === LIMIT_KEY)?.value
  return typeof value === 'number' ? value : USUAL_LIMIT
}

/** The bytes that a request of the chat may have, with its files in base64. */
export function useBodyLimit(): number {
  return limitIn(useQuery(bodyLimit).data)
}

/** Reads the files that the reader gives, as soon as the server has said its limit. */
export function useAttach(): (files: readonly File[]) => Promise<void> {
  const queries = useQueryClient()
  return async files => add(files, limitIn(await queries.ensureQueryData(bodyLimit).catch(() => undefined)))
}

const encodedSize = (size: number) => Math.ceil(size / 3) * 4

/** Reads files for the next message. What the server would refuse for its size is not added. */
async function add(added: readonly File[], limit: number): Promise<void> {
  const before = attachments.get().files
  const refused: string[] = []
  const taken: File[] = []
  let total = before.reduce((sum, { size }) => sum + encodedSize(size), 0)
  for (const file of added) {
    const next = total + encodedSize(file.size)
    if (file.size === 0 || before.length + taken.length === MOST_FILES || next > limit) refused.push(visible(file.name))
    else {
      taken.push(file)
      total = next
    }
  }
  const problem =
    refused.length > 0 ? `Not added: ${refused.join(', ')}. ${limitText(limit)} A file must not be empty.` : undefined
  try {
    const files = await Promise.all(taken.map(read))
    attachments.set({ files: [...attachments.get().files, ...files], problem })
  } catch {
    attachments.set({ files: attachments.get().files, problem: 'The browser cannot read the file. Choose it again.' })
  }
}

const limitText = (limit: number) => `A message takes at most ${MOST_FILES} files and ${sizeText(limit)} in Base64.`

async function read(file: File): Promise<Attachment> {
  const mediaType = file.type === '' ? UNNAMED_TYPE : file.type
  const data = await base64Of(file)
  const type = IMAGE_TYPES.includes(mediaType) ? 'image' : 'file'
  return {
    key: crypto.randomUUID(),
    name: file.name,
    size: file.size,
    part: { type, media_type: mediaType, data, name: file.name.slice(-500) },
  }
}

function base64Of(file: File): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const reader = new FileReader()
  reader.onload = () => resolve(typeof reader.result === 'string' ? reader.result.replace(/^[^,]*,/, '') : '')
  reader.onerror = () => reject(reader.error ?? new Error('The file cannot be read.'))
  reader.readAsDataURL(file)
  return promise
}

/** The files of the next message, with what the server takes. */
export function AttachedFiles({ limit }: { readonly limit: number }) {
  const { files, problem } = useValue(attachments)
  const remove = (key: string) => attachments.set({ files: files.filter(file => file.key !== key) })
  if (files.length === 0 && problem === undefined) return null
  const total = files.reduce((sum, { size }) => sum + encodedSize(size), 0)
  return (
    <div className="attachments">
      {files.length > 0 && (
        <ul aria-label="Attached files">
          {files.map(({ key, name, size, part }) => (
            <li key={key} className="row">
              <span className="clip">{visible(name)}</span>
              <span className="muted clip">
                {visible(part.media_type)}, {sizeText(size)}
              </span>
              <button
                type="button"
                className="button button-quiet"
                aria-label={`Remove ${visible(name)}`}
                onClick={() => remove(key)}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      {files.length > 0 && (
        <p className="muted small">
          {files.length} of {MOST_FILES} files, {sizeText(total)} of {sizeText(limit)} in Base64
        </p>
      )}
      {problem !== undefined && (
        <p className="bad small" role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

/** A button that lets the reader choose files. */
export function AttachButton() {
  const attach = useAttach()
  const field = useRef<HTMLInputElement>(null)
  return (
    <>
      <input
        ref={field}
        type="file"
        multiple
        hidden
        aria-label="Files"
        onChange={({ currentTarget }) => {
          void attach([...(currentTarget.files ?? [])])
          currentTarget.value = ''
        }}
      />
      <button type="button" className="button button-quiet" onClick={() => field.current?.click()}>
        Attach files
      </button>
    </>
  )
}
