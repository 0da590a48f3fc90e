/** Takes the place of the Markdown renderer of the forms: texts of schemas come from tool servers, and are only text. */
const Plain = ({ children }: { readonly children?: string }) => <>{children}</>

export { Plain as Markdown }
