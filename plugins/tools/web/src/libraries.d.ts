declare module 'html-encoding-sniffer' {
  /** Returns the name of the encoding. */
  export default function sniff(
    bytes: Uint8Array,
    options: { transportLayerEncodingLabel?: string; defaultEncoding?: string; maxPrescanBytes?: number }
  ): string
}

declare module '@mixmark-io/domino' {
  const domino: { createDocument(html: string): Document }
  export default domino

  interface Element {
    getAttribute(name: string): string | null
    setAttribute(name: string, value: string): void
    removeAttribute(name: string): void
    remove(): void
  }
  interface Document {
    readonly title: string
    readonly body: Element | null
    querySelectorAll(selector: string): ArrayLike<Element>
    getElementsByTagName(name: string): ArrayLike<Element>
  }
}

declare module '@joplin/turndown-plugin-gfm' {
  import type TurndownService from 'turndown'
  export const gfm: (service: TurndownService) => void
}
