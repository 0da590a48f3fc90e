/** What a page is, by what its server says. */
interface Form {
  readonly kind: 'html' | 'text' | 'binary'
  /** The type without parameters, lower case; empty where the server says none. */
  readonly type: string
  readonly charset: string | undefined
}

const HTML = /^(text\/html|application\/xhtml\+xml)$/
const TEXT =
  /^(text\/.+|application\/(json|xml|javascript|ecmascript|yaml|x-yaml|toml|sql|graphql|rtf|x-sh|x-httpd-php|x-ndjson|jsonl)|.+\+(json|xml|yaml)|message\/.+)$/
/** Types that servers give to everything. */
const ANY = /^(|application\/octet-stream|binary\/octet-stream|application\/x-unknown)$/

export function formOf(contentType: string | undefined): Form {
  const [first = '', ...parameters] = (contentType ?? '').split(';')
  const type = first.trim().toLowerCase()
  const charset = parameters.map(one => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(one)?.[1]).find(Boolean)
  const kind = HTML.test(type) ? 'html' : TEXT.test(type) || ANY.test(type) ? 'text' : 'binary'
  return { kind, type, charset }
}

const HEAD = 1024

/** Whether bytes are no text, whatever the server says of them: UTF-16 has zero bytes, too, but begins with its mark. */
export function looksBinary(bytes: Uint8Array): boolean {
  const marked = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
  return !marked && bytes.subarray(0, HEAD).includes(0)
}
