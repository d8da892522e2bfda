//! Prints the typed Rust module of a model.
//!
//! The module holds declarations only, of types from `aoti-runtime` and of the one function that the library exports:
//! it compiles without the library, in every edition since 2018, and without a warning. How runs work is the
//! runtime's affair.

use super::{
    bundle::Names,
    docs,
    interface::{ElementType, Interface, ValueInterface},
    names::{self, Language, Namer},
};
use crate::dtype::DType;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// Where the weights of a model lie when the program starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WeightsPlacement {
    /// Inside the library.
    Embedded,
    /// In a content-addressed file beside the executable, or in the folder `aoti` of the build's output.
    Sidecar {
        /// Name of the file.
        file: String,
        /// BLAKE3 digest of its content, hexadecimal.
        digest: String,
    },
    /// Given by the program at run time.
    External,
}

/// How the library gets into the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// As the static library `aoti_<symbol>`. Said in the module and not by the build script, whose word cargo
    /// passes on to only one of a package's library and programs: each that has the module links the library.
    Static,
    /// As the shared library `aoti_<symbol>`.
    Dylib,
    /// By means that the module does not know.
    Elsewhere,
    /// Not at all: there are only bindings, and loading the model is an error that says so.
    Absent,
}

/// What the module must know besides the interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Where the weights lie.
    pub weights: WeightsPlacement,
    /// How the library is linked.
    pub link: Link,
    /// Digest of the weights where they are inside the library; unknown where no library is made.
    pub weights_digest: Option<String>,
}

/// The text of the module. It defines `pub mod <identifier>`; the library must export `aoti_<symbol>_api`.
pub fn print(interface: &Interface, names: &Names<'_>, options: &Options) -> String {
    let ctx = Ctx::new(interface, *names, options);
    let file = syn::parse2(ctx.module()).expect("the tokens are those of a module");
    format!(
        "// Typed interface of a compiled model, written by cargo-aoti; changes are lost at the next build.\n\n{}",
        prettyplease::unparse(&file)
    )
}

struct Ctx<'a> {
    interface: &'a Interface,
    names: Names<'a>,
    options: &'a Options,
    module: Ident,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl<'a> Ctx<'a> {
    fn new(interface: &'a Interface, names: Names<'a>, options: &'a Options) -> Self {
        let module = Ident::new(&names::identifier(names.identifier), Span::call_site());
        let (inputs, outputs) = (field_names(&interface.inputs), field_names(&interface.outputs));
        Ctx { interface, names, options, module, inputs, outputs }
    }

    fn module(&self) -> TokenStream {
        let Ctx { interface, module, .. } = self;
        let mut lines = vec![format!("The compiled model {}.", docs::code(&interface.name))];
        let state_names: Vec<String> = interface.states.iter().map(|state| state.name.clone()).collect();
        for table in [
            docs::table("input", &interface.inputs, &self.inputs),
            docs::table("output", &interface.outputs, &self.outputs),
            docs::table("state", &interface.states, &state_names),
        ] {
            if !table.is_empty() {
                lines.push(String::new());
                lines.extend(table);
            }
        }
        let (doc, library) = (doc(&lines), self.library());
        let (model, inputs, outputs) = (self.model(), self.inputs(), self.outputs());
        quote! {
            #doc
            #[allow(clippy::all, clippy::pedantic, clippy::restriction, dead_code, unreachable_pub)]
            pub mod #module {
                #library
                #model
                #inputs
                #outputs
            }
        }
    }

    /// How the module reaches the library. What is unsafe about that stands in a macro of the runtime's, so that users
    /// may forbid unsafe code in crates that include the module.
    fn library(&self) -> TokenStream {
        let name = format!("aoti_{}", self.names.symbol);
        let api = Ident::new(&names::exported_symbol(self.names.symbol), Span::call_site());
        let weights = self.options.weights_digest.iter().filter(|_| self.interface.weights_bytes > 0);
        let parts: Vec<&str> = [self.names.library].into_iter().chain(weights.map(String::as_str)).collect();
        let digests = parts.join("+");
        let link = match self.options.link {
            // Rust's own start files for musl leave out the compiler's library, which knows the processor.
            Link::Static => quote! {
                , #[link(name = #name, kind = "static")], #[cfg_attr(target_env = "musl", link(name = "gcc"))]
            },
            Link::Dylib => quote!(, #[link(name = #name, kind = "dylib")]),
            Link::Elsewhere => TokenStream::new(),
            Link::Absent => {
                let model = &self.interface.name;
                return quote!(::aoti_runtime::__absent_library! { #model });
            }
        };
        quote!(::aoti_runtime::__library! { #api, #digests #link })
    }

    fn model(&self) -> TokenStream {
        let (load, state, run) = (self.load(), self.state(), self.run());
        quote! {
            /// The model, loaded. Threads may share it.
            #[derive(Debug)]
            pub struct Model {
                inner: ::aoti_runtime::Model,
            }

            impl Model {
                #load

                /// Loads the model with weights from elsewhere, laid out as the build wrote them.
                pub fn load_from(weights: ::aoti_runtime::Weights) -> Result<Self, ::aoti_runtime::Error> {
                    Self::load_with(::aoti_runtime::LoadOptions { weights, ..Default::default() })
                }

                /// Loads the model with full control.
                pub fn load_with(options: ::aoti_runtime::LoadOptions) -> Result<Self, ::aoti_runtime::Error> {
                    Ok(Self { inner: library_model(options)? })
                }

                /// What the model says about itself; needs no weights.
                pub fn info() -> Result<::aoti_runtime::ModelInfo, ::aoti_runtime::Error> {
                    library_info()
                }

                #state
                #run

                /// The same model without types, with what it says about itself.
                pub fn untyped(&self) -> &::aoti_runtime::Model {
                    &self.inner
                }
            }
        }
    }

    fn load(&self) -> TokenStream {
        match &self.options.weights {
            _ if self.interface.weights_bytes == 0 => quote! {
                /// Loads the model, which has no weights.
                pub fn load() -> Result<Self, ::aoti_runtime::Error> {
                    Self::load_from(::aoti_runtime::Weights::embedded())
                }
            },
            WeightsPlacement::Embedded => quote! {
                /// Loads the model with the weights inside the program.
                pub fn load() -> Result<Self, ::aoti_runtime::Error> {
                    Self::load_from(::aoti_runtime::Weights::embedded())
                }
            },
            WeightsPlacement::Sidecar { file, digest } => {
                let place =
                    format!(" Loads the model with the weights in {}, looked for beside", docs::code(file));
                quote! {
                    #[doc = #place]
                    /// the executable, then where the build put it.
                    pub fn load() -> Result<Self, ::aoti_runtime::Error> {
                        let folders = [concat!(env!("OUT_DIR"), "/aoti")];
                        Self::load_from(::aoti_runtime::Weights::sidecar(#file, #digest, &folders)?)
                    }
                }
            }
            WeightsPlacement::External => TokenStream::new(),
        }
    }

    fn has_state(&self) -> bool {
        self.interface.state_bytes > 0
    }

    fn state(&self) -> TokenStream {
        if !self.has_state() {
            return TokenStream::new();
        }
        quote! {
            /// A new state with the values that the program starts from. Runs that belong together share one.
            pub fn state(&self) -> Result<::aoti_runtime::State, ::aoti_runtime::Error> {
                self.inner.state()
            }
        }
    }

    fn run(&self) -> TokenStream {
        let inputs_type = self.inputs_type();
        let (ins, outs) = (idents(&self.inputs), idents(&self.outputs));
        let inputs_name = if ins.is_empty() { quote!(_inputs) } else { quote!(inputs) };
        let outputs_name = if outs.is_empty() { quote!(_outputs) } else { quote!(outputs) };
        let outputs_made = if outs.is_empty() {
            quote!(let outputs = Outputs {};)
        } else {
            quote!(let mut outputs = Outputs::default();)
        };
        let views = quote!(&[#(inputs.#ins.erase()),*]);
        let targets = quote!(&mut [#(outputs.#outs.as_dyn_mut()),*]);
        let (state_parameter, state) = if self.has_state() {
            (quote!(state: &mut ::aoti_runtime::State,), quote!(Some(state)))
        } else {
            (TokenStream::new(), quote!(None))
        };
        quote! {
            /// Runs the model on the program's shared thread pool.
            pub fn run(
                &self,
                #inputs_name: &#inputs_type,
                #state_parameter
            ) -> Result<Outputs, ::aoti_runtime::Error> {
                #outputs_made
                self.inner.run_shared(#views, #targets, #state)?;
                Ok(outputs)
            }

            /// Runs the model into outputs, with a workspace and on threads that the caller keeps. Allocates nothing
            /// when outputs and workspace have served such sizes before.
            pub fn run_with(
                &self,
                #inputs_name: &#inputs_type,
                #outputs_name: &mut Outputs,
                #state_parameter
                workspace: &mut ::aoti_runtime::Workspace,
                executor: &dyn ::aoti_runtime::Executor,
            ) -> Result<(), ::aoti_runtime::Error> {
                self.inner.run(#views, #targets, #state, workspace, executor)
            }
        }
    }

    fn inputs_type(&self) -> TokenStream {
        // Without fields there is nothing that a lifetime could belong to.
        if self.inputs.is_empty() { quote!(Inputs) } else { quote!(Inputs<'_>) }
    }

    fn inputs(&self) -> TokenStream {
        let fields = self.fields(
            &self.interface.inputs,
            &self.inputs,
            |element| quote!(::aoti_runtime::TensorView<'a, #element>),
        );
        let copy = copy(&self.inputs);
        let lifetime = (!self.inputs.is_empty()).then(|| quote!(<'a>));
        quote! {
            /// What a run reads.
            #[derive(Clone, Debug #copy)]
            pub struct Inputs #lifetime { #fields }
        }
    }

    fn outputs(&self) -> TokenStream {
        let fields = self.fields(
            &self.interface.outputs,
            &self.outputs,
            |element| quote!(::aoti_runtime::Tensor<#element>),
        );
        let copy = copy(&self.outputs);
        quote! {
            /// What a run gives; sizes are set by the run.
            #[derive(Clone, Debug, Default #copy)]
            pub struct Outputs { #fields }
        }
    }

    fn fields(
        &self,
        values: &[ValueInterface],
        names: &[String],
        ty: fn(TokenStream) -> TokenStream,
    ) -> TokenStream {
        let fields = values.iter().zip(idents(names)).zip(names).map(|((value, ident), name)| {
            let bounds = docs::bounds(value);
            let with = if bounds.is_empty() { String::new() } else { format!("; {bounds}") };
            let (name, sizes) = (docs::named(name, &value.name), docs::sizes(value));
            let doc =
                doc(&[format!("{name}: {} of sizes {sizes}{with}.", docs::code(&value.element.name()))]);
            let ty = ty(element(value.element));
            quote!(#doc pub #ident: #ty,)
        });
        quote!(#(#fields)*)
    }
}

/// The names of the fields that stand for these values in `Inputs` or `Outputs`.
pub fn field_names(values: &[ValueInterface]) -> Vec<String> {
    let mut namer = Namer::new(Language::Rust);
    values.iter().map(|value| namer.name(&value.name)).collect()
}

/// What to derive besides: users may be told of types that could be `Copy` and are not.
fn copy(fields: &[String]) -> Option<TokenStream> {
    fields.is_empty().then(|| quote!(, Copy))
}

fn idents(names: &[String]) -> Vec<Ident> {
    names.iter().map(|name| Ident::new(name, Span::call_site())).collect()
}

fn doc(lines: &[String]) -> TokenStream {
    let lines = lines.iter().map(|line| if line.is_empty() { String::new() } else { format!(" {line}") });
    quote!(#(#[doc = #lines])*)
}

fn element(element: ElementType) -> TokenStream {
    match element {
        ElementType::Number(dtype) => number(dtype),
        ElementType::Complex(part) => {
            let part = number(part);
            quote!(::aoti_runtime::Complex<#part>)
        }
    }
}

fn number(dtype: DType) -> TokenStream {
    let ident = Ident::new(dtype.name(), Span::call_site());
    match dtype {
        DType::F16 | DType::Bf16 | DType::F8(_) => quote!(::aoti_runtime::#ident),
        // Plain names: nothing of the user's is in scope inside the module.
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F32
        | DType::F64 => quote!(#ident),
    }
}
